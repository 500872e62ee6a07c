// Writing PNG images, with text that stays with the image (prompt, seed, settings).
//
//   write_png("out.png", {pixels, 1024, 1024, 3}, {{"Software", "Octet"}, {"caption", json}});
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace octet {

// 8 bits per channel, rows from the top without padding, channels interleaved.
struct ImageView {
  std::span<const uint8_t> pixels;
  int64_t width = 0;
  int64_t height = 0;
  int channels = 3;  // 1 gray, 3 RGB, 4 RGBA with straight alpha
};

// Throws Error where the pixels do not fill the sides, or PNG cannot hold them.
void check_image(const ImageView& image);

// Both in UTF-8. The key has 1 to 79 printable Latin-1 characters, and no space at an end or two in
// a row; the text has no NUL. Latin-1 text goes into tEXt (zTXt when long), all other into iTXt.
struct PngText {
  std::string key;
  std::string text;
};

constexpr int kFastPngLevel = 1;
constexpr int kSmallPngLevel = 9;

// Throws Error when the image or a text is not representable.
std::vector<uint8_t> encode_png(const ImageView& image, const std::vector<PngText>& texts = {},
                                int level = kFastPngLevel);

// The same into a file, which appears whole or not at all.
void write_png(const std::string& path, const ImageView& image,
               const std::vector<PngText>& texts = {});

}  // namespace octet
