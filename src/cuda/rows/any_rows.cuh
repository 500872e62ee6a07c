// What the general kernels share: rows of any type, length, stride and alignment, one value per
// load, a block for each. Such rows are read again for each pass, from L2.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/ops.h"
#include "cuda/rows/row_ptx.cuh"

namespace octet::cuda {

inline constexpr int kAnyThreads = 512;

__device__ inline float load_any(const std::byte* data, DType dtype, int64_t index) {
  if (dtype == DType::f32) return reinterpret_cast<const float*>(data)[index];
  const uint16_t bits = reinterpret_cast<const uint16_t*>(data)[index];
  if (dtype == DType::f16) return f16_to_f32(bits);
  return __uint_as_float(static_cast<uint32_t>(bits) << 16);
}

struct AnyRows {
  const std::byte* data;  // [rows, k]
  int64_t stride;         // in elements
  int64_t rows;
  int64_t k;
  DType dtype;

  explicit AnyRows(const ConstTensorView& view)
      : data(view.data),
        stride(view.row_stride()),
        rows(view.shape[0]),
        k(view.shape[1]),
        dtype(view.dtype) {}
  __device__ float at(int64_t row, int64_t column) const {
    return load_any(data, dtype, row * stride + column);
  }
};

// The same sum, in the same order, in all threads. Begins and ends with a barrier.
__device__ inline float block_sum(float value) {
  __shared__ float of_warps[kAnyThreads / 32];
#pragma unroll
  for (int mask = 1; mask < 32; mask *= 2) value += __shfl_xor_sync(0xffffffffu, value, mask);
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0;
  for (const float part : of_warps) sum += part;
  return sum;
}

// Rotates tile [columns] in place, without the factor. Starts and ends with a barrier.
__device__ inline void rotate_tile(float* tile, int columns, int group) {
  __syncthreads();
  for (int distance = 1; distance < group; distance *= 4) {
    for (int i = static_cast<int>(threadIdx.x); i < columns / 4; i += kAnyThreads) {
      float* x = tile + (i / distance) * 4 * distance + i % distance;
      const float s = __fadd_rn(x[0], x[distance]);
      const float d = __fsub_rn(x[0], x[distance]);
      const float t = __fadd_rn(x[2 * distance], x[3 * distance]);
      const float u = __fsub_rn(x[2 * distance], x[3 * distance]);
      x[0] = __fadd_rn(s, u);
      x[distance] = __fsub_rn(s, u);
      x[2 * distance] = __fadd_rn(t, d);
      x[3 * distance] = __fsub_rn(t, d);
    }
    __syncthreads();
  }
}

// The factor of the rotation's sums; 1 without a rotation.
__device__ inline float rotation_factor(int group) {
  float factor = 1.0f;
  for (int span = 1; span < group; span *= 4) factor *= 0.5f;
  return factor;
}

// An optional RowNorm.
struct AnyNorm {
  bool present = false;
  bool layer = false;
  float eps = 0;
  const float* weight = nullptr;     // [k] or null
  const std::byte* scale = nullptr;  // [k], of the rows' type, or null

  AnyNorm() = default;
  explicit AnyNorm(const RowNorm& how)
      : present(true),
        layer(how.kind == RowNorm::Kind::layer),
        eps(how.eps),
        weight(how.weight.as<float>()),
        scale(how.scale.data) {}
};

// What a row's norm subtracts, and its factor. All threads of the block take part.
struct RowMoments {
  float mean = 0;
  float factor = 1;

  __device__ RowMoments(const AnyRows& x, const AnyNorm& norm, int64_t row) {
    if (!norm.present) return;
    const float inverse_k = 1.0f / static_cast<float>(x.k);
    if (norm.layer) {
      float sum = 0;
      for (int64_t j = threadIdx.x; j < x.k; j += kAnyThreads) sum += x.at(row, j);
      mean = block_sum(sum) * inverse_k;
    }
    float squares = 0;
    for (int64_t j = threadIdx.x; j < x.k; j += kAnyThreads) {
      const float apart = x.at(row, j) - mean;
      squares = fmaf(apart, apart, squares);
    }
    factor = rsqrtf(fmaf(block_sum(squares), inverse_k, norm.eps));
  }
  __device__ float apply(float value, const AnyNorm& norm, DType dtype, int64_t column) const {
    if (!norm.present) return value;
    value = (value - mean) * factor;
    if (norm.weight != nullptr) value *= norm.weight[column];
    if (norm.scale != nullptr) value *= 1.0f + load_any(norm.scale, dtype, column);
    return value;
  }
};

}  // namespace octet::cuda
