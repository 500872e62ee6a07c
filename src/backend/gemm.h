// What an int8 GEMM is: the problem (asked, hashable), the arguments (pointers), the fusion.
//
// out[m, n] = epilogue(sum over k of a[m, k] * w[n, k]), with the epilogue of the numeric contract:
//   y = (float(acc) * row_scale[m]) * col_scale[n]     two IEEE multiplications, in this order
//   y = y + bias[n]                                    when the fusion is bias
//   y = silu(y[gate]) * y[up]                          when the fusion is swiglu: half the columns
//   out = y rounded once to the output type            f32, bf16, f16
// An i32 output is the accumulator itself, without any epilogue. No step is contracted to an fma,
// so every backend gives the same bits. (A NaN is a NaN: its payload is not part of the bits.)
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "backend/fusion.h"
#include "tensor/quantized.h"

namespace octet {

struct GemmProblem {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  DType out = DType::bf16;
  Fusion fusion = Fusion::none;
  std::string layout;  // of the weight

  bool operator==(const GemmProblem&) const = default;
  std::string to_string() const;  // "m512 n4608 k4608 BF16+bias cpu_n32_k4_of_64_offset0"
};

struct GemmArgs {
  // I8 [m, k] in [-127, 127], F32 [m]. -128 gives undefined outputs, unless this backend's stepwise
  // quantize_rows() made it.
  QTensor a;
  const QWeight* w = nullptr;  // [n, k]
  TensorView out;              // [m, n], rows may be apart; [m, n / 2] for swiglu
};

// Activations are in [-127, 127]; weights that other tools made may also hold -128. A sum of k such
// products stays inside int32 up to this k.
inline constexpr int64_t kMaxK = INT32_MAX / (127 * 128);
static_assert(kMaxK == 132'104);
// The same of rows that are quantized stepwise, which hold -128, too.
inline constexpr int64_t kMaxStepwiseK = INT32_MAX / (128 * 128);
static_assert(kMaxStepwiseK == 131'071);

// The problem that these arguments pose. Throws Error, with the values, when they do not fit
// together. Backend::gemm calls it for every backend, so the rules are written once.
GemmProblem describe_gemm(const GemmArgs& args, Fusion fusion);

}  // namespace octet

template <>
struct std::hash<octet::GemmProblem> {
  size_t operator()(const octet::GemmProblem& problem) const noexcept;
};
