// Reading and writing one element of a matrix or vector whose type is known at run time.
#pragma once

#include "tensor/tensor.h"

namespace octet::ref {

inline float load(const ConstTensorView& matrix, int64_t row, int64_t column) {
  switch (matrix.dtype) {
    case DType::bf16: return to_f32(matrix.row<bf16_t>(row)[column]);
    case DType::f16: return to_f32(matrix.row<f16_t>(row)[column]);
    case DType::f8_e4m3: return f8_e4m3_to_f32(matrix.row<uint8_t>(row)[column]);
    default: return matrix.row<float>(row)[column];
  }
}

inline float load_at(const ConstTensorView& vector, int64_t at) {
  switch (vector.dtype) {
    case DType::bf16: return to_f32(vector.as<bf16_t>()[at]);
    case DType::f16: return to_f32(vector.as<f16_t>()[at]);
    default: return vector.as<float>()[at];
  }
}

inline void store(const TensorView& matrix, int64_t row, int64_t column, float value) {
  switch (matrix.dtype) {
    case DType::bf16: matrix.row<bf16_t>(row)[column] = from_f32<bf16_t>(value); break;
    case DType::f16: matrix.row<f16_t>(row)[column] = from_f32<f16_t>(value); break;
    default: matrix.row<float>(row)[column] = value; break;
  }
}

}  // namespace octet::ref
