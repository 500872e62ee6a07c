// The int8 GEMM and the unquantized matmul, the definitions.
#include "backend/exact_silu.h"
#include "ref/elements.h"
#include "ref/ops.h"

namespace octet::ref {

void gemm(const GemmProblem& problem, const GemmArgs& args) {
  const auto* w = reinterpret_cast<const int8_t*>(args.w->values.data());
  const auto* col_scale = reinterpret_cast<const float*>(args.w->col_scale.data());
  const auto* bias = reinterpret_cast<const float*>(args.w->bias.data());
  for (int64_t i = 0; i < problem.m; ++i) {
    const int8_t* a = args.a.values.row<int8_t>(i);
    float gate = 0;  // of the column to the left
    for (int64_t j = 0; j < problem.n; ++j) {
      int32_t acc = 0;
      for (int64_t p = 0; p < problem.k; ++p) acc += a[p] * w[j * problem.k + p];
      if (problem.out == DType::i32) {
        args.out.row<int32_t>(i)[j] = acc;
        continue;
      }
      float y = static_cast<float>(acc) * args.a.scales.as<float>()[i];
      y = y * col_scale[j];
      static_assert(kFusionCount == 3, "a new fusion needs its definition here");
      switch (problem.fusion) {
        case Fusion::none: store(args.out, i, j, y); break;
        case Fusion::bias: store(args.out, i, j, y + bias[j]); break;
        case Fusion::swiglu:
          if (j % 2 == 0) {
            gate = y;
          } else {
            store(args.out, i, j / 2, exact_silu(gate) * y);
          }
      }
    }
  }
}

// Accumulates in f64, as close to the true value as is cheap.
void matmul(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out,
            const ConstTensorView& bias) {
  const int64_t k = a.shape[1];
  for (int64_t i = 0; i < out.shape[0]; ++i) {
    for (int64_t j = 0; j < out.shape[1]; ++j) {
      double acc = 0;
      for (int64_t p = 0; p < k; ++p) {
        acc += static_cast<double>(load(a, i, p)) * static_cast<double>(load(b, j, p));
      }
      if (bias.data != nullptr) acc += load_at(bias, j);
      store(out, i, j, static_cast<float>(acc));
    }
  }
}

}  // namespace octet::ref
