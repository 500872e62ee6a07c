#include "cuda/gemm/ceiling.h"
#include "cuda/ptx/mma_s8.cuh"
#include "cuda/ptx/shared.cuh"
#include "cuda/ptx/wgmma_s8.cuh"

namespace octet::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksPerMultiprocessor = 2;
constexpr int kRows = 4,
              kColumns = 4;  // independent accumulators: more than the instruction's latency

struct RandomBits {
  uint32_t state;
  __device__ explicit RandomBits(uint32_t seed) : state(seed * 2654435761u + 1) {}
  __device__ uint32_t operator()() {
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    return state;
  }
};

// Operands are random bits: zeros would draw less power and run at a higher clock than real data.
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor)
    multiply_registers(int repeats, int* sink) {
  uint32_t a[kRows][4], w[kColumns][2];
  int32_t acc[kRows][kColumns][4] = {};
  RandomBits random(blockIdx.x * kThreads + threadIdx.x);
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
      for (int j = 0; j < kColumns; ++j) ptx::mma_16x8x32(acc[i][j], a[i], w[j][0], w[j][1]);
    }
  }
  int32_t any = 0;
  for (auto& row : acc) {
    for (auto& block : row) {
      for (const int32_t acc : block) any |= acc;
    }
  }
  if (any == 0x7fffffff) *sink = any;  // all but never, and the compiler cannot know
}

constexpr int kHopperColumns = 256;
constexpr int kHopperParts = 4;  // of k = 32

// Two warpgroups, each with 64 rows of its own against the same 256 columns.
__global__ void __launch_bounds__(kThreads, 1) multiply_shared(int repeats, int* sink) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  __shared__ __align__(1024) uint32_t operands[(128 + kHopperColumns) * 128 / 4];
  RandomBits random(blockIdx.x * kThreads + threadIdx.x);
  for (auto i = threadIdx.x; i < sizeof(operands) / 4; i += kThreads) operands[i] = random();
  ptx::publish_stores();
  __syncthreads();
  const uint32_t address = ptx::shared_address(operands);
  const uint32_t a = ptx::wgmma_operand(address + threadIdx.x / 128 * 64 * 128);
  const uint32_t w = ptx::wgmma_operand(address + 128 * 128);
  int32_t acc[kHopperColumns / 8][4] = {};
  for (int repeat = 0; repeat < repeats; ++repeat) {
    ptx::wgmma_fence();
#pragma unroll
    for (int part = 0; part < kHopperParts; ++part) {
      ptx::wgmma_64xNx32(acc, a + part * 32 / 16, w + part * 32 / 16, true);
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<1>();
  }
  ptx::wgmma_wait<0>();
  int32_t any = 0;
  for (auto& block : acc) {
    for (const int32_t acc : block) any |= acc;
  }
  if (any == 0x7fffffff) *sink = any;
#endif
}

}  // namespace

double launch_hopper_ceiling(int multiprocessors, int repeats, int* sink, CUstream_st* stream) {
  multiply_shared<<<static_cast<unsigned>(multiprocessors), kThreads, 0, stream>>>(repeats, sink);
  return 2.0 * 64 * kHopperColumns * 32 * kHopperParts * (kThreads / 128) *
         static_cast<double>(multiprocessors) * repeats;
}

double launch_int8_ceiling(int multiprocessors, int repeats, int* sink, CUstream_st* stream) {
  const int blocks = kBlocksPerMultiprocessor * multiprocessors;
  multiply_registers<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(repeats, sink);
  return 2.0 * 16 * 8 * 32 * kRows * kColumns * (kThreads / 32) * static_cast<double>(blocks) *
         repeats;
}

}  // namespace octet::cuda
