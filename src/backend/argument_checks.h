// The rules for arguments of ops, written once for all backends.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "tensor/quantized.h"
#include "tensor/tensor.h"

namespace octet {

// A two-dimensional view of one of these types whose rows are contiguous, with memory behind it.
void check_matrix(std::string_view what, const ConstTensorView& view,
                  std::initializer_list<DType> types);

void check_shape(std::string_view what, const ConstTensorView& view, const Shape& expected);

// A dense vector of `length` elements of one type.
void check_vector(std::string_view what, const ConstTensorView& view, int64_t length,
                  DType type = DType::f32);

// I8 values [rows, k] and F32 scales [rows].
void check_quantized(std::string_view what, const QTensor& tensor);

inline constexpr int64_t kRotationGroups[] = {4, 16, 64, 256, 1024};

// The transform fits rows of k elements.
void check_transform(std::string_view what, const ActivationTransform& transform, int64_t k);

}  // namespace octet

// As Shape::to_string(): of a check's arguments, only when it fails.
template <>
struct fmt::formatter<octet::Shape> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const octet::Shape& shape, Context& context) const {
    return fmt::formatter<std::string>::format(shape.to_string(), context);
  }
};
