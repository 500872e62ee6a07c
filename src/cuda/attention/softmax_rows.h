// The steps between the two products of attention with its scores in memory.
#pragma once

#include "tensor/tensor.h"

struct CUstream_st;

namespace octet::cuda {

// weights[i, j] = exp((scores[i, j] - largest) * scale) / their sum over the keys that row i sees:
// all, or `first_visible` + i of them when that is positive; 0 for the others. `weights` is as wide
// as `scores` or wider, F32 (then it may be `scores` itself, with the same stride) or BF16.
void launch_softmax_rows(const ConstTensorView& scores, float scale, int64_t first_visible,
                         const TensorView& weights, CUstream_st* stream);

// out [columns, rows or more] = x [rows, columns] transposed, then zeros; F32 or BF16.
void launch_transpose(const ConstTensorView& x, const TensorView& out, CUstream_st* stream);

}  // namespace octet::cuda
