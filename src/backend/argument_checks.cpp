#include "backend/argument_checks.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>

#include "base/error.h"

namespace octet {
namespace {

std::string join(std::initializer_list<DType> types) {
  std::string text;
  for (const DType type : types) {
    if (!text.empty()) text += " or ";
    text += name_of(type);
  }
  return text;
}

bool is_aligned(const ConstTensorView& view) {
  return reinterpret_cast<uintptr_t>(view.data) % static_cast<uintptr_t>(bits_of(view.dtype) / 8) ==
         0;
}

void check_alignment(std::string_view what, const ConstTensorView& view) {
  check(is_aligned(view),
        "{} is at an address that is not a multiple of its {} bytes per element; copy it", what,
        bits_of(view.dtype) / 8);
}

}  // namespace

void check_matrix(std::string_view what, const ConstTensorView& view,
                  std::initializer_list<DType> types) {
  const bool fits = view.shape.rank() == 2 && std::ranges::find(types, view.dtype) != types.end() &&
                    (view.shape[1] <= 1 || view.strides[1] == 1) &&
                    (view.shape[0] <= 1 || view.strides[0] >= view.shape[1]) &&
                    (view.data != nullptr || view.shape.elements() == 0) && is_aligned(view);
  if (fits) [[likely]]
    return;  // the arguments of the sentences cost a microsecond to make
  check(view.shape.rank() == 2, "{} has shape {}, expected two dimensions", what, view.shape);
  check(std::ranges::find(types, view.dtype) != types.end(), "{} is {}, expected {}", what,
        name_of(view.dtype), join(types));
  check(view.shape[1] <= 1 || view.strides[1] == 1,
        "{} has elements of a row {} apart, expected contiguous rows", what, view.strides[1]);
  check(view.shape[0] <= 1 || view.strides[0] >= view.shape[1],
        "{} has rows {} elements apart, fewer than its {} columns", what, view.strides[0],
        view.shape[1]);
  check(view.data != nullptr || view.shape.elements() == 0, "{} {} has no memory", what,
        view.shape);
  check_alignment(what, view);
}

void check_shape(std::string_view what, const ConstTensorView& view, const Shape& expected) {
  check(view.shape == expected, "{} is {}, expected {}", what, view.shape, expected);
}

void check_vector(std::string_view what, const ConstTensorView& view, int64_t length, DType type) {
  const bool fits = view.dtype == type && view.shape.rank() == 1 && view.shape[0] == length &&
                    view.is_dense() && (view.data != nullptr || length == 0) && is_aligned(view);
  if (fits) [[likely]]
    return;
  check(view.dtype == type && view.shape == Shape({length}) && view.is_dense(),
        "{} is {}, expected a dense {} [{}]", what, view.to_string(), name_of(type), length);
  check(view.data != nullptr || length == 0, "{} has no memory", what);
  check_alignment(what, view);
}

void check_quantized(std::string_view what, const QTensor& tensor) {
  check_matrix(what, tensor.values, {DType::i8});
  const ConstTensorView scales = tensor.scales;
  const bool fits = scales.dtype == DType::f32 && scales.shape.rank() == 1 &&
                    scales.shape[0] == tensor.rows() && scales.is_dense() && scales.data != nullptr;
  if (fits && is_aligned(scales)) [[likely]]
    return;
  check_vector(fmt::format("{} scales", what), scales, tensor.rows());
}

void check_transform(std::string_view what, const ActivationTransform& transform, int64_t k) {
  if (transform.kind == Transform::smooth) {
    check_vector(fmt::format("{}: smooth", what), transform.smooth, k);
  }
  if (transform.kind == Transform::rotate) {
    check(std::ranges::find(kRotationGroups, transform.group) != std::end(kRotationGroups),
          "{}: a rotation group of {} is not one of {}", what, transform.group,
          fmt::join(kRotationGroups, ", "));
    check(k % transform.group == 0, "{}: k={} is not a multiple of the rotation group {}", what, k,
          transform.group);
  }
}

}  // namespace octet
