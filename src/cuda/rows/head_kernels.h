// Launchers of the ops on heads of rows: norm, rotation, int8 codes, means. No CUDA header here;
// the rules are those of row_kernels.h. Fast if head_dim is a multiple of 16 and at most 512 and
// all rows and vectors start at multiples of 16 bytes (codes: of 8); all others work, too.
#pragma once

#include <cstddef>

#include "backend/ops.h"
#include "tensor/tensor.h"

struct CUstream_st;

namespace octet::cuda {

// In place; x: F32 or BF16 [rows, heads * head_dim].
void launch_rotate_heads(const TensorView& x, const HeadRotation& how, int multiprocessors,
                         CUstream_st* stream);

// `mean`: F32 [n * head_dim], of the last n heads, or without data.
void launch_rotate_quantize_heads(const ConstTensorView& x, const HeadRotation& how,
                                  const ConstTensorView& mean, const QuantizedHeads& out,
                                  int multiprocessors, CUstream_st* stream);

// mean: F32 [heads * head_dim]; one launch for up to 128 rows, otherwise two. The order of the sum
// depends only on shape and alignment.
size_t head_mean_scratch_bytes(const ConstTensorView& x);
void launch_rotated_head_mean(const ConstTensorView& x, const HeadRotation& how, float* mean,
                              float* scratch, CUstream_st* stream);

// v: F32 or BF16 [keys, heads * head_dim]. Fast if head_dim is a multiple of 8 and at most 256.
void launch_quantize_values(const ConstTensorView& v, int64_t heads, const QuantizedValues& out,
                            CUstream_st* stream);

}  // namespace octet::cuda
