// Quantization to FP8, as stacks with FP8 linears do it to activations in every call: a block keeps
// one row in registers between its load and its store.
#include <cuda_fp8.h>

#include <algorithm>

#include "cuda/rows/peer_kernels.h"
#include "cuda/rows/values.cuh"

namespace octet::cuda {
namespace {

constexpr int kFp8Threads = 256;
constexpr int kFp8Chunks = static_cast<int>(kMostFp8Columns / 8 / kFp8Threads);  // of a thread

// The largest magnitude of all threads of the block, returned to each. Bits of magnitudes are
// ordered like the numbers.
__device__ float block_amax(float value) {
  __shared__ uint32_t of_warps[kFp8Threads / 32];
  const uint32_t of_warp = __reduce_max_sync(0xffffffffu, __float_as_uint(value));
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = of_warp;
  __syncthreads();
  uint32_t most = 0;
#pragma unroll
  for (int i = 0; i < kFp8Threads / 32; ++i) most = max(most, of_warps[i]);
  return __uint_as_float(most);
}

// One row of a block: loaded once, codes stored once.
struct Fp8Row {
  Chunk<bf16_t> chunks[kFp8Chunks];

  __device__ Fp8Row(const bf16_t* row, int columns) {
#pragma unroll
    for (int i = 0; i < kFp8Chunks; ++i) {
      const int column = (i * kFp8Threads + static_cast<int>(threadIdx.x)) * 8;
      chunks[i] =
          load_chunk<bf16_t>(reinterpret_cast<const std::byte*>(row + column), column < columns);
    }
  }
  __device__ float amax() const {
    float most = 0;
#pragma unroll
    for (int i = 0; i < kFp8Chunks; ++i) {
      float v[8];
      unpack_chunk(chunks[i], v);
#pragma unroll
      for (int j = 0; j < 8; ++j) most = max_magnitude(most, v[j]);
    }
    return block_amax(most);
  }
  __device__ void store(uint8_t* codes, int columns, float factor) const {
#pragma unroll
    for (int i = 0; i < kFp8Chunks; ++i) {
      const int column = (i * kFp8Threads + static_cast<int>(threadIdx.x)) * 8;
      if (column >= columns) continue;
      float v[8];
      unpack_chunk(chunks[i], v);
      uint32_t words[2] = {};
#pragma unroll
      for (int j = 0; j < 8; j += 2) {
        const float2 pair = make_float2(__fmul_rn(v[j], factor), __fmul_rn(v[j + 1], factor));
        const uint32_t two = __nv_cvt_float2_to_fp8x2(pair, __NV_SATFINITE, __NV_E4M3);
        words[j / 4] |= two << (8 * (j % 4));
      }
      store_vector(codes + column, make_uint2(words[0], words[1]));
    }
  }
};

__device__ inline float fp8_factor(float amax) {
  return amax > 0 ? __fdiv_rn(kFp8Most, amax) : 0.0f;
}

__global__ void __launch_bounds__(kFp8Threads)
    quantize_fp8_rows_kernel(const bf16_t* x, int64_t stride, uint8_t* codes, float* scales,
                             int columns) {
  const int64_t row = blockIdx.x;
  const Fp8Row values(x + row * stride, columns);
  const float amax = values.amax();
  values.store(codes + row * columns, columns, fp8_factor(amax));
  if (threadIdx.x == 0) scales[row] = __fdiv_rn(amax, kFp8Most);
}

__global__ void __launch_bounds__(kFp8Threads)
    fp8_amax_kernel(const bf16_t* x, int64_t stride, float* amax, int columns) {
  const Fp8Row values(x + static_cast<int64_t>(blockIdx.x) * stride, columns);
  const float of_row = values.amax();
  if (threadIdx.x == 0) atomicMax(reinterpret_cast<unsigned*>(amax), __float_as_uint(of_row));
}

__global__ void __launch_bounds__(kFp8Threads)
    quantize_fp8_tensor_kernel(const bf16_t* x, int64_t stride, uint8_t* codes, float* scale,
                               const float* amax, int columns) {
  const int64_t row = blockIdx.x;
  const Fp8Row values(x + row * stride, columns);
  values.store(codes + row * columns, columns, fp8_factor(*amax));
  if (row == 0 && threadIdx.x == 0) *scale = __fdiv_rn(*amax, kFp8Most);
}

}  // namespace

void launch_quantize_fp8_rows(const ConstTensorView& x, uint8_t* codes, float* scales,
                              CUstream_st* stream) {
  const auto rows = static_cast<unsigned>(x.shape[0]);
  if (rows == 0) return;
  quantize_fp8_rows_kernel<<<rows, kFp8Threads, 0, stream>>>(x.as<bf16_t>(), x.row_stride(), codes,
                                                             scales, static_cast<int>(x.shape[1]));
}

void launch_quantize_fp8_tensor(const ConstTensorView& x, uint8_t* codes, float* scale, float* amax,
                                CUstream_st* stream) {
  const auto rows = static_cast<unsigned>(x.shape[0]);
  if (rows == 0) return;
  const auto columns = static_cast<int>(x.shape[1]);
  cudaMemsetAsync(amax, 0, sizeof(float), stream);
  fp8_amax_kernel<<<rows, kFp8Threads, 0, stream>>>(x.as<bf16_t>(), x.row_stride(), amax, columns);
  quantize_fp8_tensor_kernel<<<rows, kFp8Threads, 0, stream>>>(x.as<bf16_t>(), x.row_stride(),
                                                               codes, scale, amax, columns);
}

}  // namespace octet::cuda
