// Outputs of a decoder as pixels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ranges.h"

namespace octet::engine {

// RGB, rows from the top.
struct PixelView {
  std::span<const uint8_t> rgb;
  int width = 0, height = 0;
};

// Values from -1 to 1 as bytes, ties to even.
inline std::vector<uint8_t> to_bytes(std::span<const float> image, ThreadPool* pool = nullptr) {
  constexpr size_t kAtOnce = size_t{1} << 16;
  std::vector<uint8_t> bytes(image.size());
  for_ranges(pool, image.size(), kAtOnce, [&](size_t first, size_t count) {
    for (size_t i = first; i < first + count; ++i) {
      const float clamped = std::clamp(image[i], -1.0f, 1.0f);
      bytes[i] = static_cast<uint8_t>(std::nearbyint((clamped + 1.0f) * 127.5f));
    }
  });
  return bytes;
}

}  // namespace octet::engine
