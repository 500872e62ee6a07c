#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cuda/matmul/plain_matmul.h"

namespace octet::cuda {
namespace {

constexpr int kTile = 16;

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
  __shared__ float tile_a[kTile][kTile];
  __shared__ float tile_b[kTile][kTile + 1];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int64_t tiles_n = (out.columns + kTile - 1) / kTile;
  const int64_t row = blockIdx.x / tiles_n * kTile + y;
  const int64_t first_column = blockIdx.x % tiles_n * kTile;
  float sum = 0;
  for (int64_t k = 0; k < a.columns; k += kTile) {
    const bool inside = k + x < a.columns;
    const int64_t row_b = first_column + y;
    tile_a[y][x] = inside && row < a.rows ? load(a.data, a.dtype, row * a.stride + k + x) : 0;
    tile_b[y][x] = inside && row_b < b.rows ? load(b.data, b.dtype, row_b * b.stride + k + x) : 0;
    __syncthreads();
    // Only what exists: zero times infinity would be NaN.
    const int count = static_cast<int>(min(static_cast<int64_t>(kTile), a.columns - k));
    for (int i = 0; i < count; ++i) sum = __fmaf_rn(tile_a[y][i], tile_b[x][i], sum);
    __syncthreads();
  }
  if (row < out.rows && first_column + x < out.columns) {
    if (bias != nullptr) sum += load(bias, out.dtype, first_column + x);
    store(out.data, out.dtype, row * out.stride + first_column + x, sum);
  }
}

// Blocks walk the rows; T has the size of an element.
template <class T>
__global__ void fill_rows(const T* vector, T* out, int64_t rows, int64_t columns, int64_t stride) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) out[row * stride + j] = vector[j];
  }
}

Matrix matrix(const ConstTensorView& view) {
  return {const_cast<std::byte*>(view.data), view.dtype, view.shape[0], view.shape[1],
          view.row_stride()};
}

}  // namespace

void launch_plain_matmul(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out,
                         const ConstTensorView& bias, CUstream_st* stream) {
  const int64_t blocks =
      ((out.shape[0] + kTile - 1) / kTile) * ((out.shape[1] + kTile - 1) / kTile);
  multiply<<<static_cast<unsigned>(blocks), dim3(kTile, kTile), 0, stream>>>(
      matrix(a), matrix(b), matrix(out), bias.data);
}

void launch_fill_rows(const ConstTensorView& vector, const TensorView& out, CUstream_st* stream) {
  const Matrix to = matrix(out);
  const auto blocks = static_cast<unsigned>(to.rows < 65'536 ? to.rows : 65'536);
  const int threads = to.columns < 64 ? 32 : to.columns < 512 ? 128 : 512;
  if (out.dtype == DType::f32) {
    fill_rows<<<blocks, threads, 0, stream>>>(vector.as<uint32_t>(), out.as<uint32_t>(), to.rows,
                                              to.columns, to.stride);
  } else {
    fill_rows<<<blocks, threads, 0, stream>>>(vector.as<uint16_t>(), out.as<uint16_t>(), to.rows,
                                              to.columns, to.stride);
  }
}

}  // namespace octet::cuda
