// The ops of ref; arguments are already checked.
#pragma once

#include "backend/gemm.h"
#include "tensor/quantized.h"

namespace octet::ref {

void quantize_rows(const ConstTensorView& x, const ActivationTransform& transform,
                   const QTensor& out);
void dequantize_rows(const QTensor& q, const TensorView& out);
void gemm(const GemmProblem& problem, const GemmArgs& args);  // weight rows as they came
void matmul(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out);

}  // namespace octet::ref
