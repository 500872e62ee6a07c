#include "cpu/matmul/panels.h"

#include <algorithm>
#include <cstring>

namespace octet::cpu {

// Blocks of even size: a short last one would cost as much to set up as a full one.
Panels::Panels(const FloatMicroKernel& micro, Side side, int64_t rows, int64_t k)
    : micro_(micro),
      side_(side),
      tile_(side == Side::a ? micro.tile_m : micro.tile_n),
      rows_(rows),
      k_(k),
      block_(round_up(
          std::max<int64_t>(1, ceil_div(k, std::max<int64_t>(1, ceil_div(k, micro.k_block)))),
          micro.k_step)) {}

void Panels::pack(const ConstTensorView& rows, int64_t panel, std::byte* packed) const {
  const int64_t element_bytes = bits_of(rows.dtype) / 8;
  for (int64_t k_at = 0; k_at < k_; k_at += block_) {
    const PanelSource source{rows.data + k_at * element_bytes, rows.row_stride(), rows.shape[0],
                             std::min(block_, k_ - k_at), rows.dtype == DType::bf16};
    (side_ == Side::a ? micro_.pack_a : micro_.pack_b)(source, packed + offset(panel, k_at));
  }
}

void Panels::pack_all(const ConstTensorView& matrix, std::byte* packed) const {
  const int64_t row_bytes = matrix.row_stride() * bits_of(matrix.dtype) / 8;
  for (int64_t panel = 0; panel < count(); ++panel) {
    pack(ConstTensorView::rows(matrix.data + panel * tile_ * row_bytes, matrix.dtype,
                               rows_of(panel), k_, matrix.row_stride()),
         panel, packed);
  }
}

int64_t accumulator_bytes(const FloatMicroKernel& micro, const Panels& a) {
  return a.count() * micro.tile_m * micro.tile_n * static_cast<int64_t>(sizeof(float));
}

// The panels of a stay in L2 for all of b, a panel of b in L1 for all of a.
void multiply_panels(const FloatMicroKernel& micro, const Panels& a, const std::byte* packed_a,
                     const Panels& b, const std::byte* packed_b, const TensorView& out,
                     const float* bias, float* acc) {
  const int64_t tile_elements = micro.tile_m * micro.tile_n;
  const int64_t out_bytes = bits_of(out.dtype) / 8;
  if (a.k() == 0) std::memset(acc, 0, static_cast<size_t>(accumulator_bytes(micro, a)));
  for (int64_t column = 0; column < out.shape[1]; column += micro.tile_n) {
    const int64_t b_panel = column / micro.tile_n;
    for (int64_t k_at = 0; k_at < a.k(); k_at += a.block()) {
      for (int64_t a_panel = 0; a_panel < a.count(); ++a_panel) {
        micro.multiply({packed_a + a.offset(a_panel, k_at), packed_b + b.offset(b_panel, k_at),
                        a.padded_length(k_at), a.rows_of(a_panel), acc + a_panel * tile_elements,
                        k_at > 0});
      }
    }
    for (int64_t a_panel = 0; a_panel < a.count(); ++a_panel) {
      const int64_t row = a_panel * micro.tile_m;
      micro.store({acc + a_panel * tile_elements,
                   out.data + (row * out.row_stride() + column) * out_bytes, out.row_stride(),
                   a.rows_of(a_panel), std::min<int64_t>(micro.tile_n, out.shape[1] - column),
                   out.dtype, bias == nullptr ? nullptr : bias + column});
    }
  }
}

}  // namespace octet::cpu
