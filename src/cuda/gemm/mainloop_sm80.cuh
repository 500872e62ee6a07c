// Multiplies the stages that the loader fills: ldmatrix from shared memory into fragments, mma.sync
// into the int32 accumulators of this warp's outputs.
//
// Fragments of the next multiplications are loaded while the current ones run, even across stages.
// Every warp both copies and multiplies, see stage_ring.cuh: while one runs its epilogue, its
// neighbour has the tensor cores.
#pragma once

#include <utility>

#include "cuda/gemm/loader_sm80.cuh"
#include "cuda/ptx/ldmatrix.cuh"
#include "cuda/ptx/mma_s8.cuh"
#include "cuda/stage_ring.cuh"

namespace octet::cuda {

// Where this warp stands in its block.
template <Tile T>
struct WarpPlace {
  int m, n, k;
  __device__ explicit WarpPlace(unsigned thread) {
    const int warp = static_cast<int>(thread / 32);
    n = warp % T.warps_n;
    m = warp / T.warps_n % T.warps_m;
    k = warp / (T.warps_n * T.warps_m);
  }
};

template <Tile T, class Rows>
class Mainloop {
 public:
  static constexpr int kRows = T.warp_m() / 16;  // blocks of one mma
  static constexpr int kColumns = T.warp_n() / 8;

  // Of thread t = lane % 4, g = lane / 4: [i][4 j + c / 2][2 h + c % 2] is the accumulator at row
  // 16 i + 8 h + g and column 32 j + 8 t + c of the warp's part of the tile.
  using Accumulators = int32_t[kRows][kColumns][4];

  __device__ Mainloop(const GemmParams& params, uint32_t stages, uint32_t barriers)
      : loader_(params, stages), ring_(barriers) {
    const WarpPlace<T> warp(threadIdx.x);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    // a: rows 0-7 and 8-15 of the first 16 bytes, then of the second. w: both halves of 8 rows,
    // then of the next 8.
    const int row_a = warp.m * T.warp_m() + lane % 16;
    const int row_w = warp.n * T.warp_n() + lane / 16 * 8 + lane % 8;
    const int chunk = warp.k * kParts * 2;
    from_a_ = stages + row_a * T.k + (chunk + lane / 16 ^ swizzle<T>(row_a)) * 16;
    from_w_ = stages + (T.m + row_w) * T.k + (chunk + lane / 8 % 2 ^ swizzle<T>(row_w)) * 16;
  }

  // Fills the pipeline. Once, before the first run().
  __device__ void begin(const GemmParams& params) {
    ring_.init();
#pragma unroll 1
    for (int stage = 0; stage < Ring::kAhead; ++stage) {
      loader_.template copy_part<0, 1>(params, stage);
      ring_.producer_commit(stage);
      loader_.end_stage(params);
    }
    ring_.consumer_wait();
  }

  // acc += the next `steps` stages.
  __device__ __forceinline__ void run(const GemmParams& params, int steps, Accumulators& acc) {
    // For each tile again: kept during the epilogue, these registers would be missing there.
#pragma unroll
    for (int i = 0; i < kRows; ++i) load_a(i, 0);
    load_w(0, 0, 0);
    for (; steps > 0; --steps) {
      run_stage(params, acc, std::make_integer_sequence<int, kParts>());
    }
  }

 private:
  using Ring = StageRing<T.stages, T.threads()>;
  static constexpr int kPairs = kColumns / 2;          // one ldmatrix feeds two blocks of columns
  static constexpr int kParts = T.k / 32 / T.warps_k;  // multiplications of k = 32 per stage
  static_assert(kPairs * kParts % 2 == 0, "the two buffers of w alternate over stages");

  template <int... kPart>
  __device__ __forceinline__ void run_stage(const GemmParams& params, Accumulators& acc,
                                            std::integer_sequence<int, kPart...>) {
    (run_part<kPart>(params, acc), ...);
  }

  template <int kPart>
  __device__ __forceinline__ void run_part(const GemmParams& params, Accumulators& acc) {
    constexpr bool kLast = kPart == kParts - 1;
    const uint32_t write = ring_.producer_slot();
    if constexpr (kPart == 0) ring_.producer_acquire();
    loader_.template copy_part<kPart, kParts>(params, write);
    if constexpr (kLast) {
      ring_.producer_commit(write);
      loader_.end_stage(params);
    }
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) {
      const int buffer = (kPart * kPairs + pair) % 2;
      if (pair + 1 < kPairs) {
        load_w(1 - buffer, pair + 1, kPart);
      } else {
        if constexpr (kLast) next_stage();
        load_w(1 - buffer, 0, kLast ? 0 : kPart + 1);
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        ptx::mma_16x8x32(acc[i][2 * pair], a_[i], w_[buffer][0], w_[buffer][1]);
        ptx::mma_16x8x32(acc[i][2 * pair + 1], a_[i], w_[buffer][2], w_[buffer][3]);
        if (pair == kPairs - 1) load_a(i, kLast ? 0 : kPart + 1);
      }
    }
  }

  // Every fragment of this stage is loaded or on its way.
  __device__ __forceinline__ void next_stage() {
    const bool wraps = ring_.consumer_release();
    from_a_ += wraps ? (1 - T.stages) * T.stage_bytes() : T.stage_bytes();
    from_w_ += wraps ? (1 - T.stages) * T.stage_bytes() : T.stage_bytes();
    ring_.consumer_wait();
  }

  // Chunks 2 part and 2 part + 1 of the rows: because of the swizzle, exclusive or replaces a sum.
  __device__ __forceinline__ void load_a(int i, int part) {
    ptx::ldmatrix_x4(a_[i], (from_a_ ^ part * 32) + i * 16 * T.k);
  }
  __device__ __forceinline__ void load_w(int buffer, int pair, int part) {
    ptx::ldmatrix_x4(w_[buffer], (from_w_ ^ part * 32) + pair * 16 * T.k);
  }

  Loader<T, Rows> loader_;
  Ring ring_;
  uint32_t from_a_, from_w_;  // this lane's first rows in the slot being multiplied
  uint32_t a_[kRows][4];
  uint32_t w_[2][4];
};

}  // namespace octet::cuda
