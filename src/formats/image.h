// What all picture formats take: pixels, and text that stays with them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace octet {

// 8 bits per channel, rows from the top without padding, channels interleaved.
struct ImageView {
  std::span<const uint8_t> pixels;
  int64_t width = 0;
  int64_t height = 0;
  int channels = 3;  // 1 gray, 3 RGB, 4 RGBA with straight alpha
};

// libpng's own limit, which reads most PNGs; other formats have smaller ones.
inline constexpr int64_t kLargestImageSide = 1'000'000;

// Throws Error, which begins with the format's name, where the pixels do not fill the sides or a
// side is too long.
void check_image(const ImageView& image, const char* format = "PNG",
                 int64_t largest_side = kLargestImageSide);

// Both in UTF-8, without NUL.
struct ImageText {
  std::string key;
  std::string text;
};

}  // namespace octet
