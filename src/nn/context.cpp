#include "nn/context.h"

#include "base/error.h"
#include "base/ranges.h"
#include "base/unset_vector.h"
#include "octet/error.h"

namespace octet::nn {
namespace {

constexpr size_t kConvertedAtOnce = size_t{1} << 16;  // numbers, by a thread of the host

TensorView part_of(const TensorView& matrix, int64_t at, Shape shape) {
  TensorView part = matrix;
  part.data += at * (bits_of(matrix.dtype) / 8);
  part.shape = shape;
  return part;
}

}  // namespace

void Context::begin_layer() const {
  backend.limit_queue();
  if (is_stopped()) throw Cancelled("stopped on request");
}

TensorView rows_of(const TensorView& matrix, int64_t first, int64_t count) {
  check(first >= 0 && count >= 0 && first + count <= matrix.shape[0],
        "rows {} to {} of a matrix with {} rows", first, first + count, matrix.shape[0]);
  return part_of(matrix, first * matrix.row_stride(), {count, matrix.shape[1]});
}

TensorView columns_of(const TensorView& matrix, int64_t first, int64_t count) {
  check(first >= 0 && count >= 0 && first + count <= matrix.shape[1],
        "columns {} to {} of a matrix with {} columns", first, first + count, matrix.shape[1]);
  return part_of(matrix, first, {matrix.shape[0], count});
}

ConstTensorView vector_of(const TensorView& row, int64_t first, int64_t count) {
  check(row.shape[0] == 1, "a vector of a matrix with {} rows, expected one", row.shape[0]);
  return ConstTensorView(columns_of(row, first, count).data, row.dtype, {count});
}

Matrix upload_matrix(Context& ctx, const float* values, int64_t rows, int64_t columns) {
  Matrix matrix = ctx.matrix(rows, columns);
  const auto count = static_cast<size_t>(rows * columns);
  if (ctx.dtype == DType::f32) {
    ctx.backend.copy_to_device(matrix.view().data, reinterpret_cast<const std::byte*>(values),
                               count * sizeof(float));
    return matrix;
  }
  UnsetVector<bf16_t> rounded(count);
  for_ranges(&ctx.backend.pool(), count, kConvertedAtOnce, [&](size_t first, size_t some) {
    for (size_t i = first; i < first + some; ++i) rounded[i] = from_f32<bf16_t>(values[i]);
  });
  ctx.backend.copy_to_device(matrix.view().data, reinterpret_cast<const std::byte*>(rounded.data()),
                             count * sizeof(bf16_t));
  return matrix;
}

void download_matrix(Context& ctx, const ConstTensorView& matrix, float* values) {
  check(matrix.is_dense(), "downloading a matrix whose rows are apart");
  const auto count = static_cast<size_t>(matrix.shape.elements());
  if (matrix.dtype == DType::f32) {
    ctx.backend.copy_to_host(reinterpret_cast<std::byte*>(values), matrix.data,
                             count * sizeof(float));
    return;
  }
  UnsetVector<bf16_t> narrow(count);
  ctx.backend.copy_to_host(reinterpret_cast<std::byte*>(narrow.data()), matrix.data,
                           count * sizeof(bf16_t));
  for_ranges(&ctx.backend.pool(), count, kConvertedAtOnce, [&](size_t first, size_t some) {
    for (size_t i = first; i < first + some; ++i) values[i] = to_f32(narrow[i]);
  });
}

}  // namespace octet::nn
