// The ops of the CPU backend except linears. Arguments are already checked and, except those of
// quantize and dequantize, not empty.
#pragma once

#include <span>

#include "backend/ops.h"
#include "base/thread_pool.h"
#include "cpu/matmul/matmul.h"
#include "cpu/rows/row_ops.h"
#include "tensor/quantized.h"

namespace octet::cpu {

// What the ops run on. Those that multiply matrices also take a kernel for their type.
struct Workers {
  ThreadPool& pool;
  const RowOps& rows;
};

// rows.cpp
void quantize_rows(const Workers& workers, const ConstTensorView& x,
                   const ActivationTransform& transform, const QTensor& out);
void quantize_rows_searched(const Workers& workers, const ConstTensorView& x,
                            const ActivationTransform& transform, std::span<const float> ratios,
                            const QTensor& out);
void dequantize_rows(const Workers& workers, const QTensor& q, const TensorView& out);
void norm(const Workers& workers, const ConstTensorView& x, const RowNorm& how,
          const TensorView& out);
void norm_quantize(const Workers& workers, const ConstTensorView& x, const RowNorm& how,
                   const ActivationTransform& transform, const QTensor& out);
void swiglu(const Workers& workers, const ConstTensorView& gate, const ConstTensorView& up,
            const TensorView& out);
void activate(const Workers& workers, const ConstTensorView& x, Activation how,
              const TensorView& out);
void add(const Workers& workers, const TensorView& h, const ConstTensorView& x);
void add_gated(const Workers& workers, const TensorView& h, const ConstTensorView& x,
               const RowNorm& how, const ConstTensorView& gate);
void embed(const Workers& workers, const ConstTensorView& table, std::span<const int32_t> rows,
           const TensorView& out);
void sinusoids(std::span<const float> times, const ConstTensorView& frequencies,
               const TensorView& out);

// euler_step.cpp
void euler_step(const Workers& workers, const EulerStep& step);

// heads.cpp
void rotate_heads(const Workers& workers, const TensorView& x, const HeadRotation& how);
void rotate_quantize_heads(const Workers& workers, const ConstTensorView& x,
                           const HeadRotation& how, const ConstTensorView& mean,
                           const QuantizedHeads& out);
void rotated_head_mean(const Workers& workers, const ConstTensorView& x, const HeadRotation& how,
                       const TensorView& mean);

// convert.cpp
void convert(const Workers& workers, const ConstTensorView& x, const TensorView& out,
             const ConstTensorView& row_scale);

// attention.cpp
void attention(const Workers& workers, const MatmulKernel& kernel, const AttentionArgs& args);
// attention_of_codes.cpp: the same with q and k in INT8, by a kernel that multiplies F32.
void attention_of_codes(const Workers& workers, const MatmulKernel& kernel,
                        const AttentionArgs& args);
// coded_values.cpp: values in 8 bits, and attention where all operands are codes.
void quantize_values(const Workers& workers, const ConstTensorView& v, int64_t heads,
                     const QuantizedValues& out);
void attention_with_coded_values(const Workers& workers, const AttentionArgs& args);

// images.cpp
void group_norm(const Workers& workers, const ConstTensorView& x, const GroupNorm& how,
                const TensorView& out);
Buffer begin_group_sums(const GroupSums& sums);
void add_group_sums(const Workers& workers, const GroupSums& sums, const ConstTensorView& x);
void conv2d(const Workers& workers, const MatmulKernel& kernel, const ConvArgs& args);

}  // namespace octet::cpu
