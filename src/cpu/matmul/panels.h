// Multiplies a few rows at a time by a matrix that was packed once, for ops that consist of many
// small products with the same operand: attention and convolutions. See matmul.h for the product of
// two whole matrices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/checked.h"
#include "cpu/matmul/float_microkernel.h"
#include "tensor/tensor.h"

namespace octet::cpu {

// How a matrix [rows, k] is stored in the panels of a micro-kernel: [panel][k block][tile, block].
class Panels {
 public:
  enum class Side : uint8_t { a, b };  // of the product a times b transposed

  Panels(const FloatMicroKernel& micro, Side side, int64_t rows, int64_t k);

  int64_t count() const { return ceil_div(rows_, tile_); }
  int64_t bytes() const { return count() * panel_bytes(); }
  int64_t rows_of(int64_t panel) const {
    return rows_ - panel * tile_ < tile_ ? rows_ - panel * tile_ : tile_;
  }
  int64_t k() const { return k_; }
  int64_t block() const { return block_; }  // the length of all blocks of k but the last
  int64_t padded_length(int64_t k_at) const {
    return round_up(k_ - k_at < block_ ? k_ - k_at : block_, micro_.k_step);
  }
  // Where the block of a panel begins, from the first panel on.
  int64_t offset(int64_t panel, int64_t k_at) const {
    return panel * panel_bytes() + k_at * tile_ * micro_.packed_bytes;
  }

  // `rows`: only the rows of that panel; F32 or BF16, as the micro-kernel reads them.
  void pack(const ConstTensorView& rows, int64_t panel, std::byte* packed) const;
  // All panels of a whole matrix.
  void pack_all(const ConstTensorView& matrix, std::byte* packed) const;

 private:
  int64_t panel_bytes() const { return round_up(k_, micro_.k_step) * tile_ * micro_.packed_bytes; }

  const FloatMicroKernel& micro_;
  Side side_;
  int64_t tile_;
  int64_t rows_, k_;
  int64_t block_;
};

// Bytes of the accumulators that multiply_panels() works on.
int64_t accumulator_bytes(const FloatMicroKernel& micro, const Panels& a);

// out [rows of a, the first `columns` rows of b] = a times b transposed, plus bias, on this thread,
// between the micro-kernel's begin_task and end_task. `bias` is f32, readable up to whole panels of
// b, or null.
void multiply_panels(const FloatMicroKernel& micro, const Panels& a, const std::byte* packed_a,
                     const Panels& b, const std::byte* packed_b, const TensorView& out,
                     const float* bias, float* acc);

}  // namespace octet::cpu
