// Attention on INT8 codes of q and k: they are dequantized, and the attention in F32 does the rest.
// Exact, and no faster than F32: on a CPU it exists for comparisons.
#include <vector>

#include "cpu/ops/ops.h"
#include "tensor/dtype.h"

namespace octet::cpu {
namespace {

struct Floats {
  std::vector<float> values;
  int64_t rows, columns;
  Floats(int64_t rows_, int64_t columns_)
      : values(static_cast<size_t>(rows_ * columns_)), rows(rows_), columns(columns_) {}
  TensorView view() {
    return TensorView(reinterpret_cast<std::byte*>(values.data()), DType::f32, {rows, columns});
  }
};

Floats dequantized(const ConstTensorView& codes, const ConstTensorView& scales) {
  Floats out(codes.shape[0], codes.shape[1]);
  const int64_t head_dim = out.columns / scales.shape[0];
  for (int64_t i = 0; i < out.rows; ++i) {
    for (int64_t j = 0; j < out.columns; ++j) {
      const float scale = scales.as<float>()[j / head_dim * scales.row_stride() + i];
      out.values[static_cast<size_t>(i * out.columns + j)] =
          static_cast<float>(codes.as<int8_t>()[i * codes.row_stride() + j]) * scale;
    }
  }
  return out;
}

Floats widened(const ConstTensorView& x) {
  Floats out(x.shape[0], x.shape[1]);
  for (int64_t i = 0; i < out.rows; ++i) {
    for (int64_t j = 0; j < out.columns; ++j) {
      const int64_t at = i * x.row_stride() + j;
      out.values[static_cast<size_t>(i * out.columns + j)] =
          x.dtype == DType::bf16 ? to_f32(x.as<bf16_t>()[at]) : x.as<float>()[at];
    }
  }
  return out;
}

}  // namespace

void attention_of_codes(const Workers& workers, const MatmulKernel& kernel,
                        const AttentionArgs& args) {
  Floats q = dequantized(args.q, args.q_scales), k = dequantized(args.k, args.k_scales);
  Floats v = widened(args.v), out(args.rows(), args.out.shape[1]);
  attention(workers, kernel,
            {q.view(), k.view(), v.view(), out.view(), args.heads, args.kv_heads, args.causal});
  for (int64_t i = 0; i < out.rows; ++i) {
    for (int64_t j = 0; j < out.columns; ++j) {
      const float value = out.values[static_cast<size_t>(i * out.columns + j)];
      const int64_t at = i * args.out.row_stride() + j;
      if (args.out.dtype == DType::bf16) {
        args.out.as<bf16_t>()[at] = from_f32<bf16_t>(value);
      } else {
        args.out.as<float>()[at] = value;
      }
    }
  }
}

}  // namespace octet::cpu
