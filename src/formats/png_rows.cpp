#include "formats/png_rows.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace octet {
namespace {

// What a decoder knows of a byte beforehand: the same channel of the pixels at the left, above, and
// above that to the left. Sixteen bits hold all sums, and let a compiler take eight at once.
struct Neighbours {
  int16_t left, above, corner;
};

int16_t predict_zero(Neighbours) { return 0; }
int16_t predict_left(Neighbours at) { return at.left; }
int16_t predict_above(Neighbours at) { return at.above; }
int16_t predict_average(Neighbours at) { return static_cast<int16_t>((at.left + at.above) >> 1); }

// The neighbour that is nearest to left + above - corner; the first of those that are as near.
int16_t predict_paeth(Neighbours at) {
  const auto across = static_cast<int16_t>(at.above - at.corner);
  const auto down = static_cast<int16_t>(at.left - at.corner);
  const auto to_left = static_cast<int16_t>(std::abs(across));
  const auto to_above = static_cast<int16_t>(std::abs(down));
  const auto to_corner = static_cast<int16_t>(std::abs(static_cast<int16_t>(across + down)));
  const int16_t upper = to_above <= to_corner ? at.above : at.corner;
  return to_left <= std::min(to_above, to_corner) ? at.left : upper;
}

// Writes the differences; returns how large they are, each from -128 to 127, without their signs.
template <auto predict>
uint32_t write_differences(const uint8_t* row, const uint8_t* above, size_t bytes,
                           size_t pixel_bytes, uint8_t* __restrict out) {
  const uint8_t* left = row - pixel_bytes;
  const uint8_t* corner = above - pixel_bytes;
  uint32_t sum = 0;
  for (size_t i = 0; i < bytes; ++i) {
    const auto difference =
        static_cast<uint8_t>(row[i] - predict(Neighbours{left[i], above[i], corner[i]}));
    out[i] = difference;
    sum += std::min(difference, static_cast<uint8_t>(-difference));
  }
  return sum;
}

constexpr std::array kFilters = {write_differences<predict_zero>, write_differences<predict_left>,
                                 write_differences<predict_above>,
                                 write_differences<predict_average>,
                                 write_differences<predict_paeth>};

}  // namespace

PngRows::PngRows(size_t row_bytes, size_t pixel_bytes)
    : pixel_bytes_(pixel_bytes),
      row_(pixel_bytes + row_bytes),
      above_(pixel_bytes + row_bytes),
      candidate_(1 + row_bytes),
      best_(1 + row_bytes) {}

std::span<const uint8_t> PngRows::filtered(std::span<const uint8_t> row) {
  std::copy(row.begin(), row.end(), row_.data() + pixel_bytes_);
  uint32_t smallest = UINT32_MAX;
  for (size_t filter = 0; filter < kFilters.size(); ++filter) {
    candidate_[0] = static_cast<uint8_t>(filter);
    const uint32_t sum = kFilters[filter](row_.data() + pixel_bytes_, above_.data() + pixel_bytes_,
                                          row.size(), pixel_bytes_, candidate_.data() + 1);
    if (sum >= smallest) continue;
    smallest = sum;
    std::swap(candidate_, best_);
  }
  std::swap(row_, above_);
  return best_;
}

}  // namespace octet
