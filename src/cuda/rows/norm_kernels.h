// Launchers of the norms of rows, alone and with what follows them. No CUDA header here; the rules
// are those of row_kernels.h.
//
// Fast if all rows and vectors start at a multiple of 16 bytes (quantized rows: as in
// row_kernels.h), channels are a multiple of 8 (16 with a rotation) and at most 16,384 (F32 with a
// gate: 12,288), and a norm with a gate is rms. Otherwise a plain kernel computes the same.
#pragma once

#include "backend/ops.h"
#include "tensor/quantized.h"
#include "tensor/tensor.h"

struct CUstream_st;

namespace octet::cuda {

// out = norm(x); F32 or BF16 [rows, channels].
void launch_norm(const ConstTensorView& x, const RowNorm& how, const TensorView& out,
                 int multiprocessors, CUstream_st* stream);

// h += tanh(gate) * norm(x)
void launch_add_gated(const TensorView& h, const ConstTensorView& x, const RowNorm& how,
                      const ConstTensorView& gate, int multiprocessors, CUstream_st* stream);

// quantize_rows() of the norm before it is rounded.
void launch_norm_quantize(const ConstTensorView& x, const RowNorm& how,
                          const ActivationTransform& transform, const QTensor& out,
                          int multiprocessors, CUstream_st* stream);

// h += tanh(gate) * norm(x), then quantize_rows() of the norm `next` of that h before it is
// rounded. One pass if both norms are rms and channels are at most 10,240; otherwise the two above.
void launch_add_gated_norm_quantize(const TensorView& h, const ConstTensorView& x,
                                    const RowNorm& how, const ConstTensorView& gate,
                                    const RowNorm& next, const ActivationTransform& transform,
                                    const QTensor& out, int multiprocessors, CUstream_st* stream);

// The first two in general, for any alignment, stride and number of channels. `gate`: of x's type
// [channels] or no data; with it the norm is added to out, otherwise stored.
void launch_norm_any(const ConstTensorView& x, const RowNorm& how, const ConstTensorView& gate,
                     const TensorView& out, int multiprocessors, CUstream_st* stream);

}  // namespace octet::cuda
