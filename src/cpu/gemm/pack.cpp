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

// Rows [panel * panel_rows, ...), columns [k0, k0 + k) of `matrix`; zeros past its end.
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

namespace {

// The parts of a packed weight that belong to one output channel.
struct PackedChannel {
  int8_t* values;  // its first group; the next ones are `nr` groups apart
  int32_t* start;

  PackedChannel(const Int8MicroKernel& kernel, const QWeight& weight, int64_t channel) {
    auto* packed = reinterpret_cast<int8_t*>(weight.values.data());
    values = packed + channel / kernel.nr * kernel.nr * padded_k(kernel, weight.k) +
             channel % kernel.nr * kernel.b_group;
    start = reinterpret_cast<int32_t*>(packed + weight_panel_bytes(kernel, weight.n, weight.k)) +
            channel;
  }
};

}  // namespace

void clear_padding(const Int8MicroKernel& kernel, const QWeight& weight) {
  for (int64_t channel = weight.n; channel < round_up(weight.n, kernel.nr); ++channel) {
    const PackedChannel to(kernel, weight, channel);
    scatter_row(kernel.b_group, nullptr, 0, padded_k(kernel, weight.k), kernel.nr, to.values);
    *to.start = 0;
  }
}

void pack_weight_panel(const Int8MicroKernel& kernel, const QWeight& weight, int64_t first,
                       const ConstTensorView& rows, int64_t panel) {
  const int64_t k = weight.k;
  const int64_t end = std::min(weight.n, (panel + 1) * kernel.nr);
  for (int64_t channel = panel * kernel.nr; channel < end; ++channel) {
    const int64_t row = weight.row_of(channel) - first;
    if (row < 0 || row >= rows.shape[0]) continue;
    const int8_t* values = rows.row<int8_t>(row);
    const PackedChannel to(kernel, weight, channel);
    scatter_row(kernel.b_group, values, k, padded_k(kernel, k), kernel.nr, to.values);
    int32_t sum = 0;
    for (int64_t p = 0; p < k; ++p) sum += values[p];
    // Wraps for long columns of one sign; so do accumulators that start with it, and both cancel.
    *to.start =
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
