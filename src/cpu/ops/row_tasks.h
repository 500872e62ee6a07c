// How ops read vectors and share the rows of a matrix among threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/checked.h"
#include "base/thread_pool.h"
#include "cpu/scratch.h"
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

inline float* floats(ThreadScratch& scratch, int64_t count) {
  const int64_t bytes = count * static_cast<int64_t>(sizeof(float));
  return reinterpret_cast<float*>(scratch.at_least(bytes));
}

// Enough work to outweigh the cost of a task, and some for every thread.
inline int64_t rows_per_task(int64_t rows, int64_t channels, int threads) {
  constexpr int64_t kElements = 32 << 10;
  const int64_t enough = ceil_div(kElements, std::max<int64_t>(1, channels));
  return std::clamp<int64_t>(ceil_div(rows, threads), 1, enough);
}

// Calls body(row) for each row, on all threads.
template <class Body>
void for_each_row(ThreadPool& pool, int64_t rows, int64_t channels, Body body) {
  const int64_t per_task = rows_per_task(rows, channels, pool.threads());
  pool.run(ceil_div(rows, per_task), [&](int64_t task, int) {
    const int64_t end = std::min(rows, (task + 1) * per_task);
    for (int64_t row = task * per_task; row < end; ++row) body(row);
  });
}

}  // namespace octet::cpu
