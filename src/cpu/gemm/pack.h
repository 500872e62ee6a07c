// Rearranging matrices into the panels of int8_microkernel.h.
#pragma once

#include <cstdint>
#include <string>

#include "cpu/gemm/int8_microkernel.h"
#include "tensor/quantized.h"
#include "tensor/tensor.h"

namespace octet::cpu {

// Names the arrangement of packed weights: kernels that agree on it can share them.
std::string weight_layout(const Int8MicroKernel& kernel);

// Sizes in bytes. Packed weights are followed by one int32 per padded column: -a_offset times the
// column's sum (zeros for kernels without an offset).
int64_t padded_k(const Int8MicroKernel& kernel, int64_t k);
int64_t weight_panel_bytes(const Int8MicroKernel& kernel, int64_t n, int64_t k);
int64_t weight_bytes(const Int8MicroKernel& kernel, int64_t n, int64_t k);
int64_t activation_bytes(const Int8MicroKernel& kernel, int64_t m, int64_t k);

// Zeros after the last output channel, in its panel and in the sums.
void clear_padding(const Int8MicroKernel& kernel, const QWeight& weight);
// Packs those of `rows`, I8 [count, k], whose output channels are in this panel; they are the
// weight's rows from `first` on.
void pack_weight_panel(const Int8MicroKernel& kernel, const QWeight& weight, int64_t first,
                       const ConstTensorView& rows, int64_t panel);

// One panel of one k block: rows [panel * mr, ...) and columns [k0, k0 + k) of the activations,
// where k is a multiple of k_step and may reach past the last column.
void pack_activation_panel(const Int8MicroKernel& kernel, const ConstTensorView& a, int64_t panel,
                           int64_t k0, int64_t k, int8_t* to);

}  // namespace octet::cpu
