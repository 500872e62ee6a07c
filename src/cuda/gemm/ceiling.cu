#include "cuda/gemm/ceiling.h"
#include "cuda/ptx/mma_bf16.cuh"
#include "cuda/ptx/mma_s8.cuh"
#include "cuda/ptx/shared.cuh"
#include "cuda/ptx/wgmma_bf16.cuh"
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

constexpr int kHopperColumns = 256;
constexpr int kHopperParts = 4;  // steps of k in an operand

// What is multiplied. Operands are random: zeros would draw less power and run at a higher clock
// than real data.
struct Int8Products {
  using Sum = int32_t;
  static constexpr int kDepth = 32;    // of k, in one instruction
  static constexpr int kInFlight = 1;  // groups of wgmma
  static constexpr int kSharedBytes = (128 + kHopperColumns) * 128;

  static __device__ uint32_t operand(uint32_t bits) { return bits; }
  static __device__ int bits_of(Sum sum) { return sum; }
  static __device__ void multiply(Sum (&acc)[4], const uint32_t (&a)[4], const uint32_t (&w)[2]) {
    ptx::mma_16x8x32(acc, a, w[0], w[1]);
  }
  // Two warpgroups, each with 64 rows of its own against the same 256 columns.
  static __device__ void multiply_shared(Sum (&acc)[kHopperColumns / 8][4], uint32_t address,
                                         const uint32_t (&)[4]) {
    const uint32_t a = ptx::wgmma_operand(address + threadIdx.x / 128 * 64 * 128);
    const uint32_t w = ptx::wgmma_operand(address + 128 * 128);
#pragma unroll
    for (int part = 0; part < kHopperParts; ++part) {
      ptx::wgmma_64xNx32(acc, a + part * 32 / 16, w + part * 32 / 16, true);
    }
  }
};

struct Bf16Products {
  using Sum = float;
  static constexpr int kDepth = 16;
  // With one more, ptxas runs out of registers and serializes the instructions. The other warpgroup
  // fills the gap.
  static constexpr int kInFlight = 0;
  static constexpr int kStepBytes = 16 * 128;                         // 16 rows of 64 columns
  static constexpr int kSharedBytes = kHopperParts * kStepBytes * 4;  // 256 columns

  // Two numbers of either sign, from 0.5 up to 1.
  static __device__ uint32_t operand(uint32_t bits) { return (bits & 0x807f807f) | 0x3f003f00; }
  static __device__ int bits_of(Sum sum) { return __float_as_int(sum); }
  static __device__ void multiply(Sum (&acc)[4], const uint32_t (&a)[4], const uint32_t (&w)[2]) {
    ptx::mma_16x8x16(acc, a, w[0], w[1]);
  }
  // Rows in registers, like the weights of values in attention; the same for all steps of k.
  static __device__ void multiply_shared(Sum (&acc)[kHopperColumns / 8][4], uint32_t address,
                                         const uint32_t (&a)[4]) {
    const uint32_t w = ptx::wgmma_operand_of_columns(address, kHopperParts * kStepBytes);
#pragma unroll
    for (int part = 0; part < kHopperParts; ++part) {
      ptx::wgmma_64xNx16_add(acc, a, w + part * kStepBytes / 16);
    }
  }
};

// Practically never writes, but the compiler cannot know that and keeps the sums.
template <class Products, int kBlocks>
__device__ void keep(const typename Products::Sum (&acc)[kBlocks][4], int* sink) {
  int any = 0;
  for (const auto& block : acc) {
    for (const auto sum : block) any |= Products::bits_of(sum);
  }
  if (any == 0x7fffffff) *sink = any;
}

template <class Products>
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor)
    multiply_registers(int repeats, int* sink) {
  uint32_t a[kRows][4], w[kColumns][2];
  typename Products::Sum acc[kRows * kColumns][4] = {};
  RandomBits random(blockIdx.x * kThreads + threadIdx.x);
  for (auto& row : a) {
    for (auto& word : row) word = Products::operand(random());
  }
  for (auto& column : w) {
    for (auto& word : column) word = Products::operand(random());
  }
  for (int repeat = 0; repeat < repeats; ++repeat) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kColumns; ++j) Products::multiply(acc[i * kColumns + j], a[i], w[j]);
    }
  }
  keep<Products>(acc, sink);
}

template <class Products>
__global__ void __launch_bounds__(kThreads, 1) multiply_shared(int repeats, int* sink) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  __shared__ __align__(1024) uint32_t operands[Products::kSharedBytes / 4];
  RandomBits random(blockIdx.x * kThreads + threadIdx.x);
  for (auto i = threadIdx.x; i < sizeof(operands) / 4; i += kThreads) {
    operands[i] = Products::operand(random());
  }
  uint32_t rows[4];
  for (auto& word : rows) word = Products::operand(random());
  ptx::publish_stores();
  __syncthreads();
  const uint32_t address = ptx::shared_address(operands);
  typename Products::Sum acc[kHopperColumns / 8][4] = {};
  for (int repeat = 0; repeat < repeats; ++repeat) {
    ptx::wgmma_fence();
    Products::multiply_shared(acc, address, rows);
    ptx::wgmma_commit();
    ptx::wgmma_wait<Products::kInFlight>();
    if constexpr (Products::kInFlight == 0) ptx::wgmma_pin(acc);
  }
  ptx::wgmma_wait<0>();
  keep<Products>(acc, sink);
#endif
}

template <class Products>
double launch(bool hopper, int multiprocessors, int repeats, int* sink, CUstream_st* stream) {
  const auto of_all = [&](double of_block, int blocks) {
    return 2.0 * Products::kDepth * of_block * static_cast<double>(blocks) * repeats;
  };
  if (hopper) {
    multiply_shared<Products>
        <<<static_cast<unsigned>(multiprocessors), kThreads, 0, stream>>>(repeats, sink);
    return of_all(64.0 * kHopperColumns * kHopperParts * (kThreads / 128), multiprocessors);
  }
  const int blocks = kBlocksPerMultiprocessor * multiprocessors;
  multiply_registers<Products>
      <<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(repeats, sink);
  return of_all(16.0 * 8 * kRows * kColumns * (kThreads / 32), blocks);
}

}  // namespace

double launch_ceiling(CeilingOf what, bool hopper, int multiprocessors, int repeats, int* sink,
                      CUstream_st* stream) {
  const auto launched = what == CeilingOf::int8 ? launch<Int8Products> : launch<Bf16Products>;
  return launched(hopper, multiprocessors, repeats, sink, stream);
}

}  // namespace octet::cuda
