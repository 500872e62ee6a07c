#include <algorithm>

#include "cuda/gemm/pack.h"

namespace octet::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kChunk = 16;  // bytes per thread
constexpr int64_t kChunksPerBlock = kBlockBytes / kChunk;

// Where a row is permuted to, see pack.h.
__device__ int64_t place_of_row(int64_t row) {
  return (row & ~int64_t{31}) | (row & 6) << 2 | (row & 24) >> 2 | (row & 1);
}

__global__ void pack_rows(const int8_t* from, int64_t rows, int8_t* packed, int64_t first,
                          int64_t packed_n, int64_t k) {
  const int64_t chunks = (k + kBlockBytes - 1) / kBlockBytes * kChunksPerBlock;  // of a row
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < rows * chunks;
       i += step) {
    const int64_t row = i / chunks;
    const int64_t chunk = i % chunks;
    const int8_t* source = from + row * k + chunk * kChunk;
    union {
      int8_t bytes[kChunk];
      int4 vector;
    } value;
    if (k % kChunk == 0 && chunk * kChunk < k) {
      value.vector = *reinterpret_cast<const int4*>(source);
    } else {
#pragma unroll
      for (int j = 0; j < kChunk; ++j) {
        value.bytes[j] = chunk * kChunk + j < k ? source[j] : static_cast<int8_t>(0);
      }
    }
    const int64_t block = chunk / kChunksPerBlock;
    int8_t* to = packed + (block * packed_n + place_of_row(first + row)) * kBlockBytes;
    reinterpret_cast<int4*>(to)[chunk % kChunksPerBlock] = value.vector;
  }
}

}  // namespace

int64_t packed_rows(int64_t n) { return (n + kPermutedRows - 1) / kPermutedRows * kPermutedRows; }

int64_t packed_bytes(int64_t n, int64_t k) {
  const int64_t blocks = std::max<int64_t>(1, (k + kBlockBytes - 1) / kBlockBytes);
  return blocks * packed_rows(n) * kBlockBytes + kReadPast;
}

void launch_pack_rows(const int8_t* from, int64_t rows, int8_t* packed, int64_t first, int64_t n,
                      int64_t k, CUstream_st* stream) {
  const int64_t chunks = rows * ((k + kBlockBytes - 1) / kBlockBytes) * kChunksPerBlock;
  if (chunks == 0) return;
  const int64_t blocks = std::min<int64_t>((chunks + kThreads - 1) / kThreads, 8192);
  pack_rows<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(from, rows, packed, first,
                                                                    packed_rows(n), k);
}

}  // namespace octet::cuda
