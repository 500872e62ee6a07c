#include "cuda/gemm/ceiling.h"
#include "cuda/ptx/mma_s8.cuh"

namespace octet::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksPerMultiprocessor = 2;
constexpr int kRows = 4, kColumns = 4;  // independent sums: more than the instruction's latency

// Operands are random bits: zeros would draw less power and run at a higher clock than real data.
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor)
    multiply_registers(int repeats, int* sink) {
  uint32_t a[kRows][4], w[kColumns][2];
  int32_t sums[kRows][kColumns][4] = {};
  uint32_t state = (blockIdx.x * kThreads + threadIdx.x) * 2654435761u + 1;
  const auto random = [&state] {
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    return state;
  };
  for (auto& row : a) {
    for (auto& word : row) word = random();
  }
  for (auto& column : w) {
    for (auto& word : column) word = random();
  }
  for (int repeat = 0; repeat < repeats; ++repeat) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kColumns; ++j) ptx::mma_16x8x32(sums[i][j], a[i], w[j][0], w[j][1]);
    }
  }
  int32_t any = 0;
  for (auto& row : sums) {
    for (auto& block : row) {
      for (const int32_t sum : block) any |= sum;
    }
  }
  if (any == 0x7fffffff) *sink = any;  // all but never, and the compiler cannot know
}

}  // namespace

double launch_int8_ceiling(int multiprocessors, int repeats, int* sink, CUstream_st* stream) {
  const int blocks = kBlocksPerMultiprocessor * multiprocessors;
  multiply_registers<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(repeats, sink);
  return 2.0 * 16 * 8 * 32 * kRows * kColumns * (kThreads / 32) * static_cast<double>(blocks) *
         repeats;
}

}  // namespace octet::cuda
