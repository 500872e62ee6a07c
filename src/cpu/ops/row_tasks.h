// How ops read vectors and share the rows of a matrix among threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/checked.h"
#include "base/thread_pool.h"
#include "cpu/rows/row_ops.h"
#include "cpu/scratch.h"
#include "tensor/quantized.h"
#include "tensor/tensor.h"

namespace octet::cpu {

// Row i of a matrix of any type.
template <class Byte>
Byte* row_bytes(const BasicView<Byte>& matrix, int64_t i) {
  return matrix.data + i * matrix.row_stride() * bits_of(matrix.dtype) / 8;
}

inline float load_at(const ConstTensorView& vector, int64_t j) {
  return vector.dtype == DType::bf16 ? to_f32(vector.as<bf16_t>()[j]) : vector.as<float>()[j];
}

inline float* floats(Scratch& scratch, int64_t count) {
  const int64_t bytes = count * static_cast<int64_t>(sizeof(float));
  return reinterpret_cast<float*>(scratch.at_least(bytes));
}

inline RowTransform to_row_transform(const ActivationTransform& transform) {
  RowTransform result;
  if (transform.kind == Transform::smooth) result.smooth = transform.smooth.as<float>();
  if (transform.kind == Transform::rotate) result.group = transform.group;
  return result;
}

// Rows that make a task worth taking.
inline int64_t rows_per_task(int64_t rows, int64_t channels, int threads) {
  constexpr int64_t kElements = 16 << 10;
  const int64_t enough = ceil_div(kElements, std::max<int64_t>(1, channels));
  return std::clamp<int64_t>(ceil_div(rows, threads), 1, enough);
}

// body(row) for each row, on all threads.
template <class Body>
void for_each_row(ThreadPool& pool, int64_t rows, int64_t channels, Body body) {
  const int64_t per_task = rows_per_task(rows, channels, pool.threads());
  pool.run(ceil_div(rows, per_task), [&](int64_t task, int) {
    const int64_t end = std::min(rows, (task + 1) * per_task);
    for (int64_t row = task * per_task; row < end; ++row) body(row);
  });
}

}  // namespace octet::cpu
