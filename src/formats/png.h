// Writing PNG images, with text that stays with the image (prompt, seed, settings).
//
//   write_png("out.png", {pixels, 1024, 1024, 3}, {{"Software", "Octet"}, {"caption", json}});
#pragma once

#include <cstddef>
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

// Both in UTF-8. The key has 1 to 79 printable Latin-1 characters, and no space at an end or two in
// a row; the text has no NUL. Latin-1 text goes into tEXt (zTXt when long), all other into iTXt.
struct PngText {
  std::string key;
  std::string text;
};

// Throws Error when the image or a text is not representable.
std::vector<std::byte> encode_png(const ImageView& image, const std::vector<PngText>& texts = {});

// The same into a file, which appears whole or not at all.
void write_png(const std::string& path, const ImageView& image,
               const std::vector<PngText>& texts = {});

}  // namespace octet
