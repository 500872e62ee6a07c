#include "formats/terminal_picture.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

#include "formats/error_message.h"
#include "octet/error.h"

namespace octet::test {
namespace {

std::vector<uint8_t> from_base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<uint8_t> bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(kDigits.find(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<uint8_t>(bits >> count));
  }
  return bytes;
}

// The next sequence from "ESC _G" to "ESC \", keys and data.
std::pair<std::string, std::string> next_chunk(std::string_view& text) {
  EXPECT_TRUE(text.starts_with("\x1b_G"));
  const size_t end = text.find("\x1b\\"), middle = text.find(';');
  EXPECT_LT(middle, end);
  std::pair<std::string, std::string> chunk(text.substr(3, middle - 3),
                                            text.substr(middle + 1, end - middle - 1));
  text.remove_prefix(end + 2);
  return chunk;
}

TEST(TerminalPictureTest, KittyGetsThePixelsInChunks) {
  constexpr int kWidth = 61, kHeight = 37;  // three chunks, the last with padding
  std::vector<uint8_t> rgb(3 * kWidth * kHeight);
  for (size_t i = 0; i < rgb.size(); ++i) rgb[i] = static_cast<uint8_t>(i * 7);
  const std::string made = kitty_sequence({rgb, kWidth, kHeight}, 5);
  std::string_view rest = made;
  std::string data;
  for (int chunk = 0; !rest.empty(); ++chunk) {
    const auto [keys, part] = next_chunk(rest);
    EXPECT_LE(part.size(), 4096u);
    EXPECT_TRUE(keys.ends_with(rest.empty() ? "m=0" : "m=1")) << keys;
    if (chunk == 0) {
      EXPECT_EQ(keys, "a=T,f=24,s=61,v=37,r=5,i=8,p=1,q=2,C=1,m=1");
    } else {
      EXPECT_EQ(keys.size(), 3u);
    }
    data += part;
  }
  EXPECT_EQ(from_base64(data), rgb);
}

// What a terminal would paint: a colour's index for each pixel, -1 where nothing was painted.
struct Painted {
  int width = 0, height = 0;
  std::vector<std::array<int, 3>> percents = std::vector<std::array<int, 3>>(256);
  std::vector<int> pixels;
};

Painted painted(std::string_view text) {
  EXPECT_TRUE(text.starts_with("\x1bPq\"1;1;"));
  EXPECT_TRUE(text.ends_with("\x1b\\"));
  size_t at = 8;
  const auto number = [&] {
    int value = 0;
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) {
      value = 10 * value + (text[at++] - '0');
    }
    return value;
  };
  Painted made;
  made.width = number();
  ++at;
  made.height = number();
  made.pixels.assign(static_cast<size_t>(made.width * made.height), -1);
  int colour = 0, x = 0, y = 0;
  const auto paint = [&](char sixel, int times) {
    for (; times > 0; --times, ++x) {
      for (int bit = 0; bit < 6; ++bit) {
        if (((sixel - 63) >> bit & 1) == 0) continue;
        EXPECT_LT(x, made.width);
        EXPECT_LT(y + bit, made.height);
        made.pixels[static_cast<size_t>((y + bit) * made.width + x)] = colour;
      }
    }
  };
  while (at + 2 < text.size()) {
    const char c = text[at++];
    if (c == '#') {
      colour = number();
      if (text[at] != ';') continue;
      at += 3;  // ";2;"
      for (int& percent : made.percents[static_cast<size_t>(colour)]) {
        percent = number();
        if (text[at] == ';') ++at;
      }
    } else if (c == '!') {
      const int times = number();
      paint(text[at++], times);
    } else if (c == '$') {
      x = 0;
    } else if (c == '-') {
      x = 0;
      y += 6;
    } else {
      paint(c, 1);
    }
  }
  return made;
}

TEST(TerminalPictureTest, SixelPaintsEveryPixel) {
  constexpr int kWidth = 25, kHeight = 16;  // the last band has four rows
  std::vector<uint8_t> rgb;
  for (int i = 0; i < kWidth * kHeight; ++i) {
    for (const int level : {i % 6, i / 6 % 6, i / 36 % 6}) {
      rgb.push_back(static_cast<uint8_t>(51 * level));  // colours that it has
    }
  }
  const Painted made = painted(sixel_sequence({rgb, kWidth, kHeight}));
  ASSERT_EQ(made.width, kWidth);
  ASSERT_EQ(made.height, kHeight);
  for (size_t i = 0; i < made.pixels.size(); ++i) {
    ASSERT_GE(made.pixels[i], 0) << i;
    const auto& percents = made.percents[static_cast<size_t>(made.pixels[i])];
    for (size_t c = 0; c < 3; ++c) EXPECT_EQ(percents[c] * 255 / 100, rgb[3 * i + c]);
  }
}

TEST(TerminalPictureTest, SixelKeepsTheMeanOfOtherColours) {
  constexpr int kSide = 48;
  const std::vector<uint8_t> rgb(3 * kSide * kSide, 120);
  const Painted made = painted(sixel_sequence({rgb, kSide, kSide}));
  double sum = 0;
  for (const int colour : made.pixels) sum += made.percents[static_cast<size_t>(colour)][0] * 2.55;
  EXPECT_NEAR(sum / made.pixels.size(), 120, 2);
}

TEST(TerminalPictureTest, ScalesDownToMeansAndUpToSquares) {
  const std::vector<uint8_t> rgb = {0, 0, 0, 200, 100, 50};  // two pixels
  EXPECT_EQ(scaled({rgb, 2, 1}, 1, 1), (std::vector<uint8_t>{100, 50, 25}));
  EXPECT_EQ(scaled({rgb, 2, 1}, 4, 1),
            (std::vector<uint8_t>{0, 0, 0, 0, 0, 0, 200, 100, 50, 200, 100, 50}));
  EXPECT_ERROR_WITH(scaled({rgb, 2, 1}, 0, 1), "0 x 1");
  EXPECT_ERROR_WITH(sixel_sequence({rgb, 3, 1}), "terminal picture");
}

}  // namespace
}  // namespace octet::test
