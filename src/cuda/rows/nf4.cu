// NF4 to bf16 and back. Dequantizing is what an NF4 linear does to its whole weight in every call,
// so it runs at the speed of memory: a thread takes sixteen codes, one load and two stores.
#include "base/checked.h"
#include "cuda/rows/peer_kernels.h"
#include "cuda/rows/values.cuh"

namespace octet::cuda {
namespace {

constexpr int kNf4Threads = 256;
constexpr int kNf4Run = 16;  // elements of a thread

struct Nf4Book {
  float values[16];
};
constexpr Nf4Book nf4_book() {
  Nf4Book book{};
  for (int i = 0; i < 16; ++i) book.values[i] = kNf4Book[i];
  return book;
}

__global__ void __launch_bounds__(kNf4Threads)
    dequantize_nf4_kernel(const uint8_t* codes, const float* absmax, bf16_t* out, int64_t runs,
                          const Nf4Book book) {
  __shared__ float values[16];  // lanes read different ones: constant memory would serialize them
  if (threadIdx.x < 16) values[threadIdx.x] = book.values[threadIdx.x];
  __syncthreads();
  const int64_t run = static_cast<int64_t>(blockIdx.x) * kNf4Threads + threadIdx.x;
  if (run >= runs) return;
  const uint2 sixteen = __ldcs(reinterpret_cast<const uint2*>(codes) + run);
  const float factor = __ldg(absmax + run / (kNf4Block / kNf4Run));
  float v[kNf4Run];
#pragma unroll
  for (int i = 0; i < kNf4Run; ++i) {
    const uint32_t word = i < 8 ? sixteen.x : sixteen.y;
    const int shift = 8 * (i % 8 / 2) + (i % 2 == 0 ? 4 : 0);
    v[i] = __fmul_rn(values[word >> shift & 15], factor);
  }
  store_eight<bf16_t>(out + run * kNf4Run, v);
  store_eight<bf16_t>(out + run * kNf4Run + 8, v + 8);
}

// A thread for each block of elements: done once for a weight.
__global__ void __launch_bounds__(kNf4Threads)
    quantize_nf4_kernel(const bf16_t* x, uint8_t* codes, float* absmax, int64_t blocks,
                        const Nf4Book book) {
  const int64_t block = static_cast<int64_t>(blockIdx.x) * kNf4Threads + threadIdx.x;
  if (block >= blocks) return;
  const bf16_t* from = x + block * kNf4Block;
  float most = 0;
  for (int i = 0; i < kNf4Block; ++i) most = max_magnitude(most, load_one(from + i));
  const float factor = most > 0 ? __fdiv_rn(1.0f, most) : 0.0f;
  const auto code_of = [&](float value) {
    const float scaled = __fmul_rn(value, factor);
    uint32_t code = 0;
#pragma unroll
    for (int i = 0; i < 15; ++i) {
      code += scaled > 0.5f * (book.values[i] + book.values[i + 1]) ? 1 : 0;
    }
    return code;
  };
  for (int i = 0; i < kNf4Block; i += 2) {
    codes[(block * kNf4Block + i) / 2] =
        static_cast<uint8_t>(code_of(load_one(from + i)) << 4 | code_of(load_one(from + i + 1)));
  }
  absmax[block] = most;
}

unsigned nf4_grid(int64_t threads) { return static_cast<unsigned>(ceil_div(threads, kNf4Threads)); }

}  // namespace

void launch_quantize_nf4(const bf16_t* x, uint8_t* codes, float* absmax, int64_t count,
                         CUstream_st* stream) {
  const int64_t blocks = count / kNf4Block;
  if (blocks == 0) return;
  quantize_nf4_kernel<<<nf4_grid(blocks), kNf4Threads, 0, stream>>>(x, codes, absmax, blocks,
                                                                    nf4_book());
}

void launch_dequantize_nf4(const uint8_t* codes, const float* absmax, bf16_t* out, int64_t count,
                           CUstream_st* stream) {
  const int64_t runs = count / kNf4Run;
  if (runs == 0) return;
  dequantize_nf4_kernel<<<nf4_grid(runs), kNf4Threads, 0, stream>>>(codes, absmax, out, runs,
                                                                    nf4_book());
}

}  // namespace octet::cuda
