// Row quantization for any alignment, stride and k. Two passes over a row, one value per load; the
// launchers of the fast kernels use it for what does not fit their registers.
#pragma once

#include "backend/ops.h"
#include "tensor/quantized.h"
#include "tensor/tensor.h"

struct CUstream_st;

namespace octet::cuda {

// x: F32, BF16 or F16 [rows, k] -> out: I8 [rows, k] with F32 scales [rows]. `norm`: applied to x
// first, or null.
void launch_quantize_any(const ConstTensorView& x, const RowNorm* norm,
                         const ActivationTransform& transform, const QTensor& out,
                         int multiprocessors, CUstream_st* stream);

}  // namespace octet::cuda
