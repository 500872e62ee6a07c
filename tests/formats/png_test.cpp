#include "formats/png.h"

#include <gtest/gtest.h>
#include <png.h>

#include <cstring>
#include <map>

#include "formats/error_message.h"
#include "formats/temporary_folder.h"

namespace octet::test {
namespace {

std::vector<uint8_t> noise(size_t bytes) {
  std::vector<uint8_t> result(bytes);
  uint32_t state = 12345;
  for (uint8_t& value : result) {
    state = state * 1664525 + 1013904223;
    value = static_cast<uint8_t>(state >> 24);
  }
  return result;
}

// The pixels as libpng's own simple reader sees them.
std::vector<uint8_t> decoded(const std::vector<std::byte>& file, int channels, uint32_t& width,
                             uint32_t& height) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  EXPECT_NE(png_image_begin_read_from_memory(&image, file.data(), file.size()), 0);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  std::vector<uint8_t> pixels(PNG_IMAGE_SIZE(image));
  EXPECT_NE(png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr), 0) << image.message;
  width = image.width;
  height = image.height;
  return pixels;
}

struct ReadText {
  int compression;
  std::string text;
};

struct Source {
  const std::vector<std::byte>& bytes;
  size_t at = 0;
};

std::map<std::string, ReadText> texts_of(const std::vector<std::byte>& file) {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  Source source{file};
  png_set_read_fn(png, &source, [](png_structp reader, png_bytep out, size_t size) {
    auto* from = static_cast<Source*>(png_get_io_ptr(reader));
    std::memcpy(out, from->bytes.data() + from->at, size);
    from->at += size;
  });
  png_read_info(png, info);
  png_textp texts = nullptr;
  int count = 0;
  png_get_text(png, info, &texts, &count);
  std::map<std::string, ReadText> result;
  for (int i = 0; i < count; ++i) {
    result[texts[i].key] = {texts[i].compression, texts[i].text};
  }
  png_destroy_read_struct(&png, &info, nullptr);
  return result;
}

TEST(Png, RoundTripsGrayRgbAndRgba) {
  for (const int channels : {1, 3, 4}) {
    for (const auto& [width, height] : {std::pair<int64_t, int64_t>{1, 1}, {37, 21}, {256, 3}}) {
      const auto pixels = noise(static_cast<size_t>(width * height * channels));
      const auto file = encode_png({pixels, width, height, channels});
      uint32_t read_width = 0;
      uint32_t read_height = 0;
      EXPECT_EQ(decoded(file, channels, read_width, read_height), pixels);
      EXPECT_EQ(read_width, width);
      EXPECT_EQ(read_height, height);
    }
  }
}

TEST(Png, KeepsTextInTheChunkThatSuitsIt) {
  const auto pixels = noise(3);
  const std::string long_text(5000, 'y');
  std::string long_unicode;
  for (int i = 0; i < 1000; ++i) long_unicode += "日本";
  const auto file = encode_png({pixels, 1, 1, 3}, {{"Software", "Octet"},
                                                   {"Ünï key", "caf\u00e9\nsecond line"},
                                                   {"long", long_text},
                                                   {"caption", R"({"text":"日本 😀"})"},
                                                   {"long unicode", long_unicode},
                                                   {"with tab", "a\tb"},
                                                   {"empty", ""}});
  auto texts = texts_of(file);
  EXPECT_EQ(texts.size(), 7u);
  EXPECT_EQ(texts["Software"].text, "Octet");
  EXPECT_EQ(texts["Software"].compression, PNG_TEXT_COMPRESSION_NONE);
  EXPECT_EQ(texts["\xdcn\xef key"].text, "caf\xe9\nsecond line");
  EXPECT_EQ(texts["long"].text, long_text);
  EXPECT_EQ(texts["long"].compression, PNG_TEXT_COMPRESSION_zTXt);
  EXPECT_EQ(texts["caption"].text, R"({"text":"日本 😀"})");
  EXPECT_EQ(texts["caption"].compression, PNG_ITXT_COMPRESSION_NONE);
  EXPECT_EQ(texts["long unicode"].text, long_unicode);
  EXPECT_EQ(texts["long unicode"].compression, PNG_ITXT_COMPRESSION_zTXt);
  EXPECT_EQ(texts["with tab"].text, "a\tb");
  EXPECT_EQ(texts["empty"].text, "");
  EXPECT_LT(file.size(), 2000u);
}

TEST(Png, RefusesKeysAndTextsThatThePngFormatCannotHold) {
  const auto pixels = noise(3);
  const std::string too_long(80, 'k');
  for (const std::string& key :
       {std::string(), too_long, std::string(" a"), std::string("a "), std::string("a  b"),
        std::string("a\nb"), std::string("日本"), std::string("a\xff"), std::string("a\0b", 3)}) {
    EXPECT_ERROR_WITH(encode_png({pixels, 1, 1, 3}, {{key, "text"}}), "text key");
  }
  EXPECT_NO_THROW(encode_png({pixels, 1, 1, 3}, {{too_long.substr(1), "text"}}));
  EXPECT_ERROR_WITH(encode_png({pixels, 1, 1, 3}, {{"k", std::string("a\0b", 3)}}), "\"k\"");
  EXPECT_ERROR_WITH(encode_png({pixels, 1, 1, 3}, {{"k", "\xff"}}), "not UTF-8");
}

TEST(Png, RefusesImagesThatDoNotMatchTheirPixels) {
  const auto pixels = noise(12);
  EXPECT_ERROR_WITH(encode_png({pixels, 2, 3, 3}), "expected 18");
  EXPECT_ERROR_WITH(encode_png({pixels, 6, 1, 2}), "2 channels");
  EXPECT_ERROR_WITH(encode_png({pixels, 0, 4, 3}), "0 x 4");
  EXPECT_ERROR_WITH(encode_png({pixels, -2, -2, 3}), "-2 x -2");
  EXPECT_ERROR_WITH(encode_png({pixels, 1LL << 40, 1, 3}), "sides");
}

TEST(Png, WritesFilesWholeOrNotAtAll) {
  const TemporaryFolder folder;
  const auto pixels = noise(12);
  const std::string path = folder.file("a.png");
  write_png(path, {pixels, 2, 2, 3}, {{"seed", "7"}});
  const std::string content = folder.read("a.png");
  const auto encoded = encode_png({pixels, 2, 2, 3}, {{"seed", "7"}});
  ASSERT_EQ(content.size(), encoded.size());
  EXPECT_EQ(std::memcmp(content.data(), encoded.data(), encoded.size()), 0);

  EXPECT_ERROR_WITH(write_png(path, {pixels, 5, 5, 3}), "PNG");
  EXPECT_EQ(folder.read("a.png"), content);
  EXPECT_EQ(folder.entries(), 1u);
  EXPECT_ERROR_WITH(write_png("/nonexistent/a.png", {pixels, 2, 2, 3}), "/nonexistent/a.png");
}

}  // namespace
}  // namespace octet::test
