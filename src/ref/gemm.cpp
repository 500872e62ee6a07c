// The int8 GEMM and the unquantized matmul, the definitions.
#include <vector>

#include "backend/exact_silu.h"
#include "ref/elements.h"
#include "ref/ops.h"

namespace octet::ref {
namespace {

// The heads of q and k of the row i, whose columns are `row`.
void rotate_row(std::vector<float>& row, int64_t i, const HeadRotations& heads) {
  const int64_t half = heads.head_dim() / 2;
  const auto angles = [&](const ConstTensorView& table) {
    return ConstTensorView(reinterpret_cast<const std::byte*>(table.row<float>(i)), DType::f32,
                           {1, half});
  };
  const auto rotate = [&](int64_t first, int64_t count, const ConstTensorView& weight) {
    if (count == 0) return;
    auto* columns = reinterpret_cast<std::byte*>(row.data() + first * 2 * half);
    rotate_heads(TensorView(columns, DType::f32, {1, count * 2 * half}),
                 {count, heads.eps, weight, angles(heads.cos), angles(heads.sin)});
  };
  rotate(0, heads.q_heads, heads.q_weight);
  rotate(heads.q_heads, heads.k_heads, heads.k_weight);
}

}  // namespace

void gemm(const GemmProblem& problem, const GemmArgs& args) {
  const auto* w = reinterpret_cast<const int8_t*>(args.w->values.data());
  const auto* col_scale = reinterpret_cast<const float*>(args.w->col_scale.data());
  const auto* bias = reinterpret_cast<const float*>(args.w->bias.data());
  for (int64_t i = 0; i < problem.m; ++i) {
    const int8_t* a = args.a.values.row<int8_t>(i);
    float gate = 0;          // of the column to the left
    std::vector<float> row;  // so far, if its heads are rotated
    for (int64_t j = 0; j < problem.n; ++j) {
      int32_t acc = 0;
      for (int64_t p = 0; p < problem.k; ++p) acc += a[p] * w[j * problem.k + p];
      if (problem.out == DType::i32) {
        args.out.row<int32_t>(i)[j] = acc;
        continue;
      }
      float y = static_cast<float>(acc) * args.a.scales.as<float>()[i];
      y = y * col_scale[j];
      static_assert(kFusionCount == 4, "a new fusion needs its definition here");
      switch (problem.fusion) {
        case Fusion::none: store(args.out, i, j, y); break;
        case Fusion::bias: store(args.out, i, j, y + bias[j]); break;
        case Fusion::swiglu:
          if (j % 2 == 0) {
            gate = y;
          } else {
            store(args.out, i, j / 2, exact_silu(gate) * y);
          }
          break;
        case Fusion::rotary: row.push_back(y);
      }
    }
    if (problem.fusion != Fusion::rotary) continue;
    rotate_row(row, i, *args.heads);
    for (int64_t j = 0; j < problem.n; ++j) store(args.out, i, j, row[static_cast<size_t>(j)]);
  }
}

// Accumulates in f64: the nearest to the true value that is cheap to have.
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
