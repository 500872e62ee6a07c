// The ops of ref; arguments are already checked.
#pragma once

#include <span>

#include "backend/gemm.h"
#include "backend/ops.h"
#include "tensor/quantized.h"

namespace octet::ref {

void quantize_rows(const ConstTensorView& x, const ActivationTransform& transform,
                   const QTensor& out);
void quantize_rows_searched(const ConstTensorView& x, const ActivationTransform& transform,
                            std::span<const float> ratios, const QTensor& out);
void dequantize_rows(const QTensor& q, const TensorView& out);
void convert(const ConstTensorView& x, const TensorView& out, const ConstTensorView& row_scale);
void gemm(const GemmProblem& problem, const GemmArgs& args);  // weight rows by output channel
void matmul(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out,
            const ConstTensorView& bias);

// rows.cpp
void norm(const ConstTensorView& x, const RowNorm& how, const TensorView& out);
void norm_quantize(const ConstTensorView& x, const RowNorm& how,
                   const ActivationTransform& transform, const QTensor& out);
void swiglu(const ConstTensorView& gate, const ConstTensorView& up, const TensorView& out);
void activate(const ConstTensorView& x, Activation how, const TensorView& out);
void add(const TensorView& h, const ConstTensorView& x);
void add_gated(const TensorView& h, const ConstTensorView& x, const RowNorm& how,
               const ConstTensorView& gate);
void add_gated_norm_quantize(const TensorView& h, const ConstTensorView& x, const RowNorm& how,
                             const ConstTensorView& gate, const RowNorm& next,
                             const ActivationTransform& transform, const QTensor& out);
void embed(const ConstTensorView& table, std::span<const int32_t> rows, const TensorView& out);
void sinusoids(std::span<const float> times, const ConstTensorView& frequencies,
               const TensorView& out);
void euler_step(const EulerStep& step);

// heads.cpp
void rotate_heads(const TensorView& x, const HeadRotation& how);
void rotate_quantize_heads(const ConstTensorView& x, const HeadRotation& how,
                           const ConstTensorView& mean, const QuantizedHeads& out);
void rotated_head_mean(const ConstTensorView& x, const HeadRotation& how, const TensorView& mean);

// attention.cpp
void quantize_values(const ConstTensorView& v, int64_t heads, const QuantizedValues& out);
void attention(const AttentionArgs& args);

// images.cpp
void group_norm(const ConstTensorView& x, const GroupNorm& how, const TensorView& out);
// Of an image that comes in parts, ref keeps all: its sums go over the image twice.
void add_group_sums(const GroupSums& sums, const ConstTensorView& x);
void conv2d(const ConvArgs& args);

}  // namespace octet::ref
