// The unquantized product if the library cannot run it: odd types, odd strides, or no library.
#pragma once

#include "tensor/tensor.h"

struct CUstream_st;

namespace octet::cuda {

// a [m, k] and b [n, k] both F32 or both BF16; out F32, BF16 or F16 [m, n]; bias of out's type [n],
// or no data; accumulated in f32, one rounding.
void launch_plain_matmul(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out,
                         const ConstTensorView& bias, CUstream_st* stream);

// out := acc + bias in each row, rounded once; acc F32, which may be out; bias of out's type.
void launch_add_bias(const TensorView& acc, const ConstTensorView& bias, const TensorView& out,
                     CUstream_st* stream);

}  // namespace octet::cuda
