// Rows of an image as PNG compresses them: each byte less what its neighbours foretell, so that
// smooth pictures become small numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace octet {

class PngRows {
 public:
  PngRows(size_t row_bytes, size_t pixel_bytes);

  // The next row from the top: the number of a filter (0 none, 1 left, 2 above, 3 average,
  // 4 Paeth's), then that filter's differences, the smallest of all. Valid until the next call.
  std::span<const uint8_t> filtered(std::span<const uint8_t> row);

 private:
  size_t pixel_bytes_;
  std::vector<uint8_t> row_, above_;       // with a pixel of zeros before them
  std::vector<uint8_t> candidate_, best_;  // with the filter's number before them
};

}  // namespace octet
