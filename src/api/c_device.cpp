#include "api/c_device.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "backend/argument_checks.h"
#include "backend/host_backend.h"

namespace octet::c_api {

DType dtype_of(octet_dtype dtype, const char* field) {
  switch (dtype) {
    case OCTET_F32: return DType::f32;
    case OCTET_BF16: return DType::bf16;
    case OCTET_F16: return DType::f16;
    case OCTET_I8: return DType::i8;
    case OCTET_I32: return DType::i32;
    default: break;
  }
  throw InvalidRequest(
      field, sentence("`dtype` of `{}` is {}, which is not an octet_dtype", field, dtype));
}

void check_extent(int64_t extent, const char* name, const char* field) {
  check_value(extent >= 0 && extent <= kLargestExtent, field,
              "`{}` of `{}` is {}, expected 0 to {}", name, field, extent, kLargestExtent);
}

TensorView view_of(const octet_matrix* matrix, const char* field) {
  check_given(matrix, field);
  check_reserved(matrix->reserved);
  const DType dtype = dtype_of(matrix->dtype, field);
  check_extent(matrix->rows, "rows", field);
  check_extent(matrix->columns, "columns", field);
  const int64_t stride = matrix->row_stride == 0 ? matrix->columns : matrix->row_stride;
  check_extent(stride, "row_stride", field);
  check_value(stride >= matrix->columns, field,
              "`row_stride` of `{}` is {}, fewer elements than its {} columns", field, stride,
              matrix->columns);
  check_value(matrix->data != nullptr || matrix->rows == 0 || matrix->columns == 0, field,
              "`data` of `{}` is NULL", field);
  return TensorView::rows(static_cast<std::byte*>(matrix->data), dtype, matrix->rows,
                          matrix->columns, stride);
}

TensorView vector_of(const float* values, int64_t count, const char* field) {
  check_value(values != nullptr || count == 0, field, "`{}` is NULL", field);
  // A QTensor is used for outputs, too, and so is never const; inputs are only read.
  return {reinterpret_cast<std::byte*>(const_cast<float*>(values)), DType::f32, {count}};
}

void check_finite(const float* values, int64_t count, const char* field) {
  if (values == nullptr) return;
  for (int64_t i = 0; i < count; ++i) {
    check_value(std::isfinite(values[i]), field,
                "`{}` has {} as number {}, expected finite numbers", field, values[i], i);
  }
}

void check_no_stream(const Backend& backend, const void* stream) {
  check_value(stream == nullptr || !keeps_data_on_host(backend), "stream",
              "`stream` is given, but this device has none; expected NULL");
}

ActivationTransform transform_of(const float* smooth, int64_t rotation_group, int64_t k) {
  check_value(smooth == nullptr || rotation_group == 0, "rotation_group",
              "`rotation_group` is {}, but there is a `smooth`; expected one of them",
              rotation_group);
  if (smooth != nullptr) {
    return {.kind = Transform::smooth, .smooth = vector_of(smooth, k, "smooth")};
  }
  if (rotation_group == 0) return {};
  check_value(std::ranges::find(kRotationGroups, rotation_group) != std::end(kRotationGroups),
              "rotation_group", "`rotation_group` is {}, expected 0, {}", rotation_group,
              fmt::join(kRotationGroups, ", "));
  check_value(k % rotation_group == 0, "rotation_group",
              "`rotation_group` is {}, of which {} columns are no multiple", rotation_group, k);
  return {.kind = Transform::rotate, .group = rotation_group};
}

const QWeight& weight_for(const octet_device& device, const octet_weight* weight) {
  check_given(weight, "weight");
  check_value(weight->device == device.shared, "weight",
              "`weight` was made for another device; make one for this one");
  return weight->packed;
}

}  // namespace octet::c_api
