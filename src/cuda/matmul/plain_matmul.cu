#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cuda/matmul/plain_matmul.h"

namespace octet::cuda {
namespace {

constexpr int kPlainTile = 16;

__device__ float load(const void* from, DType dtype, int64_t index) {
  if (dtype == DType::bf16) return __bfloat162float(static_cast<const __nv_bfloat16*>(from)[index]);
  if (dtype == DType::f16) return __half2float(static_cast<const __half*>(from)[index]);
  return static_cast<const float*>(from)[index];
}

__device__ void store(void* to, DType dtype, int64_t index, float value) {
  if (dtype == DType::bf16) {
    static_cast<__nv_bfloat16*>(to)[index] = __float2bfloat16_rn(value);
  } else if (dtype == DType::f16) {
    static_cast<__half*>(to)[index] = __float2half_rn(value);
  } else {
    static_cast<float*>(to)[index] = value;
  }
}

struct Matrix {
  void* data;
  DType dtype;
  int64_t rows, columns, stride;
};

// A 16 x 16 tile per block, 16 columns of k at a time through shared memory.
// `bias`: of out's type, or null.
__global__ void multiply(Matrix a, Matrix b, Matrix out, const void* bias) {
  __shared__ float tile_a[kPlainTile][kPlainTile];
  __shared__ float tile_b[kPlainTile][kPlainTile + 1];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int64_t tiles_n = (out.columns + kPlainTile - 1) / kPlainTile;
  const int64_t row = blockIdx.x / tiles_n * kPlainTile + y;
  const int64_t first_column = blockIdx.x % tiles_n * kPlainTile;
  float acc = 0;
  for (int64_t k = 0; k < a.columns; k += kPlainTile) {
    const bool inside = k + x < a.columns;
    const int64_t row_b = first_column + y;
    tile_a[y][x] = inside && row < a.rows ? load(a.data, a.dtype, row * a.stride + k + x) : 0;
    tile_b[y][x] = inside && row_b < b.rows ? load(b.data, b.dtype, row_b * b.stride + k + x) : 0;
    __syncthreads();
    // Only existing elements: zero times infinity would be NaN.
    const int count = static_cast<int>(min(static_cast<int64_t>(kPlainTile), a.columns - k));
    for (int i = 0; i < count; ++i) acc = __fmaf_rn(tile_a[y][i], tile_b[x][i], acc);
    __syncthreads();
  }
  if (row < out.rows && first_column + x < out.columns) {
    if (bias != nullptr) acc += load(bias, out.dtype, first_column + x);
    store(out.data, out.dtype, row * out.stride + first_column + x, acc);
  }
}

// One thread per element, neighbours side by side.
__global__ void add_bias(const float* acc, int64_t acc_stride, const void* bias, Matrix out) {
  const int64_t elements = out.rows * out.columns;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; at < elements;
       at += step) {
    const int64_t row = at / out.columns, column = at % out.columns;
    const float y = acc[row * acc_stride + column] + load(bias, out.dtype, column);
    store(out.data, out.dtype, row * out.stride + column, y);
  }
}

Matrix matrix(const ConstTensorView& view) {
  return {const_cast<std::byte*>(view.data), view.dtype, view.shape[0], view.shape[1],
          view.row_stride()};
}

}  // namespace

void launch_plain_matmul(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out,
                         const ConstTensorView& bias, CUstream_st* stream) {
  const int64_t blocks = ((out.shape[0] + kPlainTile - 1) / kPlainTile) *
                         ((out.shape[1] + kPlainTile - 1) / kPlainTile);
  multiply<<<static_cast<unsigned>(blocks), dim3(kPlainTile, kPlainTile), 0, stream>>>(
      matrix(a), matrix(b), matrix(out), bias.data);
}

void launch_add_bias(const TensorView& acc, const ConstTensorView& bias, const TensorView& out,
                     CUstream_st* stream) {
  constexpr int kThreads = 256;
  constexpr int64_t kMostBlocks = 65'536;
  const int64_t blocks = (out.shape.elements() + kThreads - 1) / kThreads;
  add_bias<<<static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks), kThreads, 0,
             stream>>>(acc.as<float>(), acc.row_stride(), bias.data, matrix(out));
}

}  // namespace octet::cuda
