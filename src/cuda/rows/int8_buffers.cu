// Filling and copying int8 buffers: random values for tuning, and rows moved to an aligned pitch.
#include <algorithm>

#include "base/checked.h"
#include "cuda/rows/row_kernels.h"

namespace octet::cuda {
namespace {

constexpr int kBufferThreads = 256;
constexpr int64_t kMaxBufferBlocks = 4096;  // enough to fill any device; threads stride beyond

// splitmix64: every bit of the result depends on every bit of the counter.
__device__ inline uint64_t hash(uint64_t counter) {
  counter += 0x9e3779b97f4a7c15u;
  counter = (counter ^ (counter >> 30)) * 0xbf58476d1ce4e5b9u;
  counter = (counter ^ (counter >> 27)) * 0x94d049bb133111ebu;
  return counter ^ (counter >> 31);
}

// Sums of four uniform bytes, 32 bits of a hash for each: close to normal, with a deviation of 30,
// as quantized activations have. Uniform values would draw more power, and run at a lower clock.
__global__ void __launch_bounds__(kBufferThreads)
    fill_random_kernel(int8_t* values, size_t count, uint64_t seed) {
  const size_t words = (count + 3) / 4;
  const bool aligned = reinterpret_cast<uintptr_t>(values) % 4 == 0;
  const size_t stride = static_cast<size_t>(gridDim.x) * kBufferThreads;
  for (size_t i = static_cast<size_t>(blockIdx.x) * kBufferThreads + threadIdx.x; i < words;
       i += stride) {
    uint32_t word = 0;
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      const auto bits = static_cast<uint32_t>(hash(hash(seed) + 2 * i + b / 2) >> (b % 2 * 32));
      const int sum = static_cast<int>(__dp4a(bits, 0x01010101u, 0u)) - 510;  // deviation 148
      const int value = max(-127, min(127, sum * 13 / 64));
      word |= (static_cast<uint32_t>(value) & 0xffu) << (8 * b);
    }
    if (aligned && 4 * i + 4 <= count) {
      reinterpret_cast<uint32_t*>(values)[i] = word;
    } else {
      for (size_t j = 4 * i; j < min(4 * i + 4, count); ++j) {
        values[j] = static_cast<int8_t>(word >> (8 * (j - 4 * i)));
      }
    }
  }
}

// A thread makes 4 aligned bytes of the copy; a warp reads 128 consecutive ones.
__global__ void __launch_bounds__(kBufferThreads)
    copy_padded_kernel(const int8_t* from, int64_t from_stride, int8_t* to, int64_t to_stride,
                       int64_t rows, int64_t columns) {
  const int64_t column =
      (static_cast<int64_t>(blockIdx.x) * kBufferThreads + static_cast<int>(threadIdx.x)) * 4;
  if (column >= to_stride) return;
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const int8_t* in = from + row * from_stride + column;
    uint32_t word = 0;
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      if (column + b < columns)
        word |= static_cast<uint32_t>(static_cast<uint8_t>(in[b])) << (8 * b);
    }
    *reinterpret_cast<uint32_t*>(to + row * to_stride + column) = word;
  }
}

}  // namespace

void launch_fill_random_int8(int8_t* values, size_t count, uint64_t seed, CUstream_st* stream) {
  if (count == 0) return;
  const int64_t blocks = ceil_div(static_cast<int64_t>(count), 4 * kBufferThreads);
  fill_random_kernel<<<static_cast<unsigned>(std::min(blocks, kMaxBufferBlocks)), kBufferThreads, 0,
                       stream>>>(values, count, seed);
}

void launch_copy_padded(const int8_t* from, int64_t from_stride, int8_t* to, int64_t to_stride,
                        int64_t rows, int64_t columns, CUstream_st* stream) {
  if (rows == 0 || to_stride == 0) return;
  const dim3 grid(static_cast<unsigned>(ceil_div(to_stride, 4 * kBufferThreads)),
                  static_cast<unsigned>(std::min<int64_t>(rows, kMaxBufferBlocks)));
  copy_padded_kernel<<<grid, kBufferThreads, 0, stream>>>(from, from_stride, to, to_stride, rows,
                                                          columns);
}

}  // namespace octet::cuda
