#include "formats/png.h"

#include <gtest/gtest.h>
#include <png.h>
#include <zlib.h>

#include <cstring>
#include <map>

#include "formats/error_message.h"
#include "formats/temporary_folder.h"
#include "octet/error.h"

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
std::vector<uint8_t> decoded(const std::vector<uint8_t>& file, int channels, uint32_t& width,
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
  const std::vector<uint8_t>& bytes;
  size_t at = 0;
};

std::map<std::string, ReadText> texts_of(const std::vector<uint8_t>& file) {
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

// The data of all chunks of a type, unpacked: rows, each after its filter's number.
std::vector<uint8_t> unpacked_rows(const std::vector<uint8_t>& file, size_t bytes, int* chunks) {
  std::vector<uint8_t> packed;
  for (size_t at = 8; at < file.size();) {
    const size_t size =
        (file[at] << 24) | (file[at + 1] << 16) | (file[at + 2] << 8) | file[at + 3];
    const bool is_data = std::memcmp(file.data() + at + 4, "IDAT", 4) == 0;
    if (is_data) packed.insert(packed.end(), file.begin() + at + 8, file.begin() + at + 8 + size);
    *chunks += is_data;
    at += size + 12;
  }
  std::vector<uint8_t> rows(bytes);
  uLongf found = bytes;
  EXPECT_EQ(uncompress(rows.data(), &found, packed.data(), packed.size()), Z_OK);
  EXPECT_EQ(found, bytes);
  return rows;
}

TEST(Png, TakesTheFilterThatSuitsARow) {
  constexpr size_t kWidth = 64, kRows = 6;
  std::vector<uint8_t> pixels(kRows * kWidth);
  const auto row = [&](size_t y) { return pixels.data() + y * kWidth; };
  const auto random = noise(kWidth);
  for (size_t x = 0; x < kWidth; ++x) {
    row(0)[x] = 100;                                                           // as the left
    row(1)[x] = x % 2 == 0 ? 0 : 3;                                            // small by itself
    row(2)[x] = static_cast<uint8_t>(row(1)[x] + (x < kWidth / 2 ? 0 : 120));  // Paeth's
    row(3)[x] = random[x];                                                     // any
    row(4)[x] = random[x];                                                     // as above
    row(5)[x] = static_cast<uint8_t>(((x == 0 ? 0 : row(5)[x - 1]) + row(4)[x]) / 2);
  }
  const auto file = encode_png({pixels, kWidth, kRows, 1});
  int chunks = 0;
  const auto rows = unpacked_rows(file, kRows * (kWidth + 1), &chunks);
  for (const auto& [y, filter] : std::map<size_t, int>{{0, 1}, {1, 0}, {2, 4}, {4, 2}, {5, 3}}) {
    EXPECT_EQ(rows[y * (kWidth + 1)], filter) << "row " << y;
  }
  uint32_t width = 0, height = 0;
  EXPECT_EQ(decoded(file, 1, width, height), pixels);
}

TEST(Png, EveryLevelKeepsThePixelsOfALargeImage) {
  constexpr int64_t kSide = 403;  // more than a chunk of data, and an odd row
  const auto random = noise(3 * kSide * kSide);
  for (const int level : {kFastPngLevel, 2, 6, kSmallPngLevel}) {
    const auto file = encode_png({random, kSide, kSide}, {}, level);
    int chunks = 0;
    unpacked_rows(file, static_cast<size_t>(kSide * (3 * kSide + 1)), &chunks);
    EXPECT_GT(chunks, 1);
    uint32_t width = 0, height = 0;
    EXPECT_EQ(decoded(file, 3, width, height), random);
  }
  EXPECT_THROW(encode_png({random, kSide, kSide}, {}, 0), InvalidRequest);
  EXPECT_ERROR_WITH(encode_png({random, kSide, kSide}, {}, 10), "10, expected 1 to 9");
}

// The reason for the strategy of the fast level.
TEST(Png, PicturesAreAsSmallAtTheFastLevelAsAtZlibsOwn) {
  constexpr int64_t kSide = 128;
  std::vector<uint8_t> pixels = noise(3 * kSide * kSide);
  for (int64_t i = 0; i < 3 * kSide * kSide; ++i) {
    const int64_t x = i / 3 % kSide, y = i / 3 / kSide;
    pixels[static_cast<size_t>(i)] = static_cast<uint8_t>(x + y / 2 + pixels[i] % 4);
  }
  const size_t fast = encode_png({pixels, kSide, kSide}).size();
  EXPECT_LT(static_cast<double>(fast),
            1.02 * static_cast<double>(encode_png({pixels, kSide, kSide}, {}, 6).size()));
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
