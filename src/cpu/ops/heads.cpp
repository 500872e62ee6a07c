// Ops on the heads of rows: each head is the work of RowOps::rotate_head.
#include <vector>

#include "cpu/ops/ops.h"
#include "cpu/ops/row_tasks.h"

namespace octet::cpu {
namespace {

ThreadScratch head_scratch;       // one head in f32
ThreadScratch head_code_scratch;  // and one for the row quantizer

HeadAngles head_angles(const HeadRotation& how, int64_t row, int64_t head, int64_t head_dim) {
  const bool second = head >= how.heads - how.second_heads;
  return {(second ? how.second_weight : how.weight).as<float>(), how.cos.row<float>(row),
          how.sin.row<float>(row), head_dim / 2, how.eps};
}

// A head of a row after its norm and rotation, before it is rounded.
float* rotated_head(const Workers& workers, const ConstTensorView& x, const HeadRotation& how,
                    int64_t row, int64_t head) {
  const int64_t head_dim = x.shape[1] / how.heads;
  float* values = floats(head_scratch, head_dim);
  for (int64_t j = 0; j < head_dim; ++j) {
    const int64_t channel = head * head_dim + j;
    values[j] =
        x.dtype == DType::bf16 ? to_f32(x.row<bf16_t>(row)[channel]) : x.row<float>(row)[channel];
  }
  workers.rows.rotate_head(values, DType::f32, head_angles(how, row, head, head_dim));
  return values;
}

}  // namespace

void rotate_heads(const Workers& workers, const TensorView& x, const HeadRotation& how) {
  const int64_t head_dim = x.shape[1] / how.heads;
  const int64_t head_bytes = head_dim * bits_of(x.dtype) / 8;
  for_each_row(workers.pool, x.shape[0], x.shape[1], [&](int64_t i) {
    for (int64_t head = 0; head < how.heads; ++head) {
      workers.rows.rotate_head(row_bytes(x, i) + head * head_bytes, x.dtype,
                               head_angles(how, i, head, head_dim));
    }
  });
}

void rotate_quantize_heads(const Workers& workers, const ConstTensorView& x,
                           const HeadRotation& how, const ConstTensorView& mean,
                           const QuantizedHeads& out) {
  const int64_t head_dim = x.shape[1] / how.heads;
  const int64_t without_mean = x.shape[1] - (mean.data == nullptr ? 0 : mean.shape[0]);
  for_each_row(workers.pool, x.shape[0], x.shape[1], [&](int64_t i) {
    for (int64_t head = 0; head < how.heads; ++head) {
      const int64_t first = head * head_dim;
      float* values = rotated_head(workers, x, how, i, head);
      for (int64_t j = 0; j < head_dim && first >= without_mean; ++j) {
        values[j] -= mean.as<float>()[first - without_mean + j];
      }
      float scale = 0;
      workers.rows.quantize(values, DType::f32, head_dim, {}, floats(head_code_scratch, head_dim),
                            out.codes.row<int8_t>(i) + first, &scale);
      out.scales.row<float>(head)[i] = scale * out.scale_factor;
    }
  });
}

// A head at a time, so that threads share no sums.
void rotated_head_mean(const Workers& workers, const ConstTensorView& x, const HeadRotation& how,
                       const TensorView& mean) {
  const int64_t rows = x.shape[0], head_dim = x.shape[1] / how.heads;
  workers.pool.run(how.heads, [&](int64_t head, int) {
    std::vector<double> sums(static_cast<size_t>(head_dim));
    for (int64_t i = 0; i < rows; ++i) {
      const float* values = rotated_head(workers, x, how, i, head);
      for (int64_t j = 0; j < head_dim; ++j) {
        sums[static_cast<size_t>(j)] += static_cast<double>(values[j]);
      }
    }
    for (int64_t j = 0; j < head_dim; ++j) {
      mean.as<float>()[head * head_dim + j] =
          static_cast<float>(sums[static_cast<size_t>(j)] / static_cast<double>(rows));
    }
  });
}

}  // namespace octet::cpu
