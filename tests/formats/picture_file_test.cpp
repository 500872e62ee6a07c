#include "formats/picture_file.h"

#include <gtest/gtest.h>

#if OCTET_HAS_JPEG
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on
#endif
#if OCTET_HAS_WEBP
#include <webp/decode.h>
#endif

#include <cstdlib>

#include "formats/error_message.h"
#include "formats/jpeg.h"
#include "formats/png.h"
#include "formats/temporary_folder.h"
#include "formats/webp.h"
#include "formats/xmp.h"
#include "octet/error.h"

namespace octet::test {
namespace {

constexpr int kWidth = 40, kHeight = 24;

// Smooth, so that little is lost.
std::vector<uint8_t> ramp() {
  std::vector<uint8_t> rgb;
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      for (const int value : {6 * x, 10 * y, 3 * (x + y)}) {
        rgb.push_back(static_cast<uint8_t>(value));
      }
    }
  }
  return rgb;
}

const std::vector<ImageText> kTexts = {
    {"Software", "Octet"}, {"caption", "{\"a\": \"<b> & 'c' \\n\"}"}, {"seed", "7"}, {"x", "é雪"}};

int largest_difference(const std::vector<uint8_t>& a, const uint8_t* b) {
  int largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

void expect_texts(const std::vector<uint8_t>& file) {
  const PictureTexts read = read_picture_texts(std::as_bytes(std::span(file)), "made");
  EXPECT_EQ(read.width, kWidth);
  EXPECT_EQ(read.height, kHeight);
  ASSERT_EQ(read.texts.size(), kTexts.size());
  for (size_t i = 0; i < kTexts.size(); ++i) {
    EXPECT_EQ(read.texts[i].key, kTexts[i].key);
    EXPECT_EQ(read.texts[i].text, kTexts[i].text);
  }
}

// No beginning of a file, and no file with a byte changed, is more than an Error.
void expect_sentences_of_damage(const std::vector<uint8_t>& file) {
  const auto read = [](const std::vector<uint8_t>& bytes) {
    try {
      read_picture_texts(std::as_bytes(std::span(bytes)), "damaged");
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()), "");
    }
  };
  for (size_t size = 0; size < file.size(); ++size) {
    read(std::vector<uint8_t>(file.begin(), file.begin() + static_cast<ptrdiff_t>(size)));
  }
  for (size_t at = 0; at < file.size(); ++at) {
    for (const uint8_t value : {0, 0x7f, 0xff}) {
      std::vector<uint8_t> changed = file;
      changed[at] = value;
      read(changed);
    }
  }
}

TEST(PictureFileTest, PngGivesItsTextsBack) {
  std::vector<ImageText> texts = kTexts;
  const auto rgb = ramp();
  const auto file = encode_png({rgb, kWidth, kHeight}, texts);
  expect_texts(file);
  expect_sentences_of_damage(file);
  // Long ones are compressed.
  texts = {{"latin", std::string(5000, 'a')}, {"other", "雪" + std::string(5000, 'b')}};
  const auto packed = encode_png({rgb, kWidth, kHeight}, texts);
  const PictureTexts read = read_picture_texts(std::as_bytes(std::span(packed)), "made");
  ASSERT_EQ(read.texts.size(), 2u);
  EXPECT_EQ(read.texts[0].text, texts[0].text);
  EXPECT_EQ(read.texts[1].text, texts[1].text);
}

TEST(PictureFileTest, TextThatUnpacksToMuchIsRefused) {
  const auto rgb = ramp();
  const auto file =
      encode_png({rgb, kWidth, kHeight}, {{"bomb", std::string(size_t{17} << 20, 'a')}});
  EXPECT_ERROR_WITH(read_picture_texts(std::as_bytes(std::span(file)), "a.png"), "a.png: a text");
}

TEST(PictureFileTest, XmpOfOthersHasNoTexts) {
  EXPECT_TRUE(texts_in_xmp("<x:xmpmeta><dc:title>a</dc:title></x:xmpmeta>").empty());
  EXPECT_TRUE(texts_in_xmp("</octet:metadata><octet:metadata>").empty());
  EXPECT_ERROR_WITH(texts_in_xmp("<octet:metadata>{</octet:metadata>"), "XMP");
}

TEST(PictureFileTest, NamesSayTheFormat) {
  EXPECT_EQ(format_of("a.PNG"), PictureFormat::png);
  EXPECT_EQ(format_of("a.JpG"), PictureFormat::jpeg);
  EXPECT_EQ(format_of("a.jpeg"), PictureFormat::jpeg);
  EXPECT_EQ(format_of("a.webp"), PictureFormat::webp);
  EXPECT_EQ(format_of("a"), PictureFormat::png);
  EXPECT_THROW(format_of("a.gif"), InvalidRequest);
  EXPECT_TRUE(has_picture_ending("a/b.webp"));
  EXPECT_FALSE(has_picture_ending("a.png/b"));
  const auto rgb = ramp();
  EXPECT_THROW(write_picture_file("a.jpg", {rgb, kWidth, kHeight}, {}, 0), InvalidRequest);
  EXPECT_ERROR_WITH(read_picture_texts({}, "a.txt"), "a.txt: is not a PNG, JPEG or WebP");
}

TEST(PictureFileTest, InMemoryIsWhatAFileWouldBe) {
  Picture picture{.width = kWidth, .height = kHeight, .rgb = ramp()};
  for (const ImageText& text : kTexts) picture.metadata.emplace_back(text.key, text.text);
  const TemporaryFolder folder;
  for (const auto& [format, name, title] : Words<PictureFormat>::list) {
    if (!can_encode(format)) {
      EXPECT_THROW(encode_picture(picture, format), Error);
      continue;
    }
    const auto bytes = encode_picture(picture, format, 80);
    expect_texts(bytes);
    const std::string file = std::string("a.") + name;
    write_picture(folder.file(file), picture, 80);
    EXPECT_EQ(folder.read(file), std::string(bytes.begin(), bytes.end())) << name;
    EXPECT_EQ(bytes == encode_picture(picture, format, 90), format == PictureFormat::png) << name;
    EXPECT_THROW(encode_picture(picture, format, 0), InvalidRequest);
    EXPECT_THROW(encode_picture(picture, format, 101), InvalidRequest);
  }
  EXPECT_TRUE(can_encode(PictureFormat::png));
  EXPECT_FALSE(can_encode(static_cast<PictureFormat>(7)));
  EXPECT_ERROR_WITH(encode_picture(picture, static_cast<PictureFormat>(7)), "none of its values");
  picture.width = 7;
  EXPECT_THROW(encode_picture(picture, PictureFormat::png), Error);
}

#if OCTET_HAS_JPEG
TEST(PictureFileTest, JpegIsReadByLibjpeg) {
  const auto rgb = ramp();
  const auto file = encode_jpeg({rgb, kWidth, kHeight}, kTexts, 95);
  expect_texts(file);
  expect_sentences_of_damage(file);
  jpeg_decompress_struct info = {};
  jpeg_error_mgr errors = {};
  info.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, file.data(), file.size());
  ASSERT_EQ(jpeg_read_header(&info, TRUE), JPEG_HEADER_OK);
  ASSERT_TRUE(jpeg_start_decompress(&info));
  ASSERT_EQ(info.output_width, static_cast<unsigned>(kWidth));
  ASSERT_EQ(info.output_height, static_cast<unsigned>(kHeight));
  std::vector<uint8_t> read(rgb.size());
  while (info.output_scanline < info.output_height) {
    uint8_t* row = read.data() + size_t{info.output_scanline} * kWidth * 3;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  EXPECT_LE(largest_difference(rgb, read.data()), 8);
  // Less quality, fewer bytes.
  EXPECT_LT(encode_jpeg({rgb, kWidth, kHeight}, {}, 30).size(),
            encode_jpeg({rgb, kWidth, kHeight}, {}, 95).size());
  EXPECT_ERROR_WITH(
      encode_jpeg({rgb, kWidth, kHeight}, {{"caption", std::string(70'000, 'a')}}, 95),
      "at most 65533; write a PNG");
}
#else
TEST(PictureFileTest, JpegNamesTheLibraryThatIsMissing) {
  EXPECT_ERROR_WITH(require_format(PictureFormat::jpeg), "libjpeg-dev");
}
#endif

#if OCTET_HAS_WEBP
TEST(PictureFileTest, WebpIsReadByLibwebp) {
  const auto rgb = ramp();
  for (const int quality : {95, 100}) {
    const auto file = encode_webp({rgb, kWidth, kHeight}, kTexts, quality);
    expect_texts(file);
    expect_sentences_of_damage(file);
    for (const auto& each : {file, encode_webp({rgb, kWidth, kHeight}, {}, quality)}) {
      int width = 0, height = 0;
      uint8_t* read = WebPDecodeRGB(each.data(), each.size(), &width, &height);
      ASSERT_NE(read, nullptr);
      ASSERT_EQ(width, kWidth);
      ASSERT_EQ(height, kHeight);
      EXPECT_LE(largest_difference(rgb, read), quality == 100 ? 0 : 16);
      WebPFree(read);
    }
  }
}
#else
TEST(PictureFileTest, WebpNamesTheLibraryThatIsMissing) {
  EXPECT_ERROR_WITH(require_format(PictureFormat::webp), "libwebp-dev");
}
#endif

}  // namespace
}  // namespace octet::test
