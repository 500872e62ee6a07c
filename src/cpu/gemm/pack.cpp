#include "cpu/gemm/pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/checked.h"

namespace octet::cpu {
namespace {

// Copies row `row` of a panel: groups of `group` bytes, `group * panel_rows` bytes apart.
// The group size is a template argument because a memcpy of known size is one move.
template <int kGroup>
void scatter_row(const int8_t* from, int64_t k, int64_t k_padded, int panel_rows, int8_t* to) {
  const int64_t step = int64_t{kGroup} * panel_rows;
  int64_t j = 0;
  for (; j + kGroup <= k; j += kGroup, to += step) std::memcpy(to, from + j, kGroup);
  for (; j < k_padded; j += kGroup, to += step) {
    std::memset(to, 0, kGroup);
    if (j < k) std::memcpy(to, from + j, static_cast<size_t>(k - j));
  }
}

void scatter_row(int group, const int8_t* from, int64_t k, int64_t k_padded, int panel_rows,
                 int8_t* to) {
  switch (group) {
    case 4: scatter_row<4>(from, k, k_padded, panel_rows, to); break;
    case 8: scatter_row<8>(from, k, k_padded, panel_rows, to); break;
    case 16: scatter_row<16>(from, k, k_padded, panel_rows, to); break;
    default: scatter_row<64>(from, k, k_padded, panel_rows, to);
  }
}

// Rows [panel * panel_rows, ...), columns [k0, k0 + k) of `matrix`; what is past its end is zero.
void pack_panel(const ConstTensorView& matrix, int64_t panel, int panel_rows, int group, int64_t k0,
                int64_t k, int8_t* to) {
  const int64_t columns = std::min(k, matrix.shape[1] - k0);
  for (int i = 0; i < panel_rows; ++i, to += group) {
    const int64_t row = panel * panel_rows + i;
    if (row < matrix.shape[0]) {
      scatter_row(group, matrix.row<int8_t>(row) + k0, columns, k, panel_rows, to);
    } else {
      scatter_row(group, nullptr, 0, k, panel_rows, to);
    }
  }
}

}  // namespace

std::string weight_layout(const Int8MicroKernel& kernel) {
  return fmt::format("cpu_n{}_k{}_of_{}_offset{}", kernel.nr, kernel.b_group, kernel.k_step,
                     kernel.a_offset);
}

int64_t padded_k(const Int8MicroKernel& kernel, int64_t k) { return round_up(k, kernel.k_step); }

int64_t weight_panel_bytes(const Int8MicroKernel& kernel, int64_t n, int64_t k) {
  return round_up(n, kernel.nr) * padded_k(kernel, k);
}

int64_t weight_bytes(const Int8MicroKernel& kernel, int64_t n, int64_t k) {
  return weight_panel_bytes(kernel, n, k) +
         round_up(n, kernel.nr) * static_cast<int64_t>(sizeof(int32_t));
}

int64_t activation_bytes(const Int8MicroKernel& kernel, int64_t m, int64_t k) {
  return round_up(m, kernel.mr) * padded_k(kernel, k);
}

void pack_weight_panel(const Int8MicroKernel& kernel, const ConstTensorView& weight, int64_t panel,
                       int8_t* packed) {
  const int64_t k = weight.shape[1];
  const int64_t k_padded = padded_k(kernel, k);
  pack_panel(weight, panel, kernel.nr, kernel.b_group, 0, k_padded,
             packed + panel * kernel.nr * k_padded);
  auto* starts =
      reinterpret_cast<int32_t*>(packed + weight_panel_bytes(kernel, weight.shape[0], k));
  for (int j = 0; j < kernel.nr; ++j) {
    const int64_t column = panel * kernel.nr + j;
    int32_t sum = 0;
    if (column < weight.shape[0]) {
      const int8_t* values = weight.row<int8_t>(column);
      for (int64_t p = 0; p < k; ++p) sum += values[p];
    }
    // Wraps for long columns of one sign; so do the sums that it starts, and both cancel.
    starts[column] =
        static_cast<int32_t>(static_cast<uint32_t>(-kernel.a_offset) * static_cast<uint32_t>(sum));
  }
}

void pack_activation_panel(const Int8MicroKernel& kernel, const ConstTensorView& a, int64_t panel,
                           int64_t k0, int64_t k, int8_t* to) {
  pack_panel(a, panel, kernel.mr, kernel.a_group, k0, k, to);
  if (kernel.a_offset == 0) return;
  // a + 128 as an unsigned byte is a with its sign bit flipped.
  for (int64_t i = 0; i < kernel.mr * k; ++i) to[i] = static_cast<int8_t>(to[i] ^ -128);
}

}  // namespace octet::cpu
