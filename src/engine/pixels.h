// Outputs of a decoder as pixels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace octet::engine {

// RGB, rows from the top.
struct PixelView {
  std::span<const uint8_t> rgb;
  int width = 0, height = 0;
};

// Values from -1 to 1 as bytes, ties to even.
inline std::vector<uint8_t> to_bytes(std::span<const float> image) {
  std::vector<uint8_t> bytes;
  bytes.reserve(image.size());
  for (const float value : image) {
    const float clamped = std::clamp(value, -1.0f, 1.0f);
    bytes.push_back(static_cast<uint8_t>(std::nearbyint((clamped + 1.0f) * 127.5f)));
  }
  return bytes;
}

}  // namespace octet::engine
