// The fused INT8 GEMM of the family sm80: int8 x int8 -> int32 by mma.sync, scales, bias or
// activation and one rounding in the epilogue. Runs on sm_80 and everything newer.
#pragma once

#include <type_traits>

#include "cuda/gemm/epilogue.cuh"
#include "cuda/gemm/mainloop_sm80.cuh"
#include "cuda/gemm/schedule.cuh"
#include "cuda/gemm/share.cuh"
#include "cuda/gemm/tiles.h"
#include "cuda/ptx/cp_async.cuh"
#include "cuda/ptx/registers.cuh"
#include "cuda/ptx/shared.cuh"

namespace octet::cuda {

// A shared tile's accumulators belong to the whole block.
template <Tile T>
struct BlockTeam {
  static constexpr int kThreads = T.threads();
  static constexpr int kTeams = 1;
  static constexpr int kBlocksPerWorker = 1;
  uint32_t* arrived;
  __device__ int number() const { return 0; }
  __device__ int rank() const { return static_cast<int>(threadIdx.x); }
  __device__ void sync() const { __syncthreads(); }
};

// The accumulators of warps that share outputs and differ in k. True for the warps that get them.
template <Tile T, class Accumulators>
__device__ bool add_slices(int32_t* slices, Accumulators& acc) {
  constexpr int kCount = sizeof(acc) / sizeof(int32_t);
  constexpr int kThreads = T.threads() / T.warps_k;
  auto* flat = &acc[0][0][0];
  const WarpPlace<T> warp(threadIdx.x);
  int32_t* place = slices + static_cast<int>(threadIdx.x) % kThreads;
  __syncthreads();  // the last tile's have been read
  if (warp.k > 0) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      place[((warp.k - 1) * kCount + i) * kThreads] = flat[i];
    }
  }
  __syncthreads();
  if (warp.k > 0) return false;
#pragma unroll
  for (int slice = 0; slice < T.warps_k - 1; ++slice) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) flat[i] += place[(slice * kCount + i) * kThreads];
  }
  return true;
}

template <Tile T, Fusion F, WeightRows R>
__device__ __forceinline__ void run_block(const GemmParams& params) {
  using Rows =
      std::conditional_t<R == WeightRows::packed, PackedRows<T>, PlainRows<T, kShrink<F> == 2>>;
  using Mainloop = cuda::Mainloop<T, Rows>;
  static_assert(T.is_sound(), "this tile breaks a rule of Tile::is_sound()");
  extern __shared__ __align__(128) unsigned char stages[];
  __shared__ uint64_t barriers[2 * T.stages];
  __shared__ uint32_t arrived;
  Mainloop mainloop(params, ptx::shared_address(stages), ptx::shared_address(barriers));
  mainloop.begin(params);
  WorkList<1> list;
  Work work;
  while (list.next(params, work)) {
    typename Mainloop::Accumulators acc = {};
    const int steps = work.k_end - work.k_begin;
    mainloop.run(params, steps, acc);
    if constexpr (T.warps_k > 1) {
      auto* slices = reinterpret_cast<int32_t*>(stages + T.stages * T.stage_bytes());
      if (!add_slices<T>(slices, acc)) continue;
    } else {
      if (steps < params.k_steps &&
          !share_accumulators(params, work, BlockTeam<T>{&arrived}, acc)) {
        continue;
      }
    }
    const TilePlace place = place_of(params, work.tile);
    const WarpPlace<T> warp(ptx::thread_read_anew());
    with_out_type(params, [&](auto type) {
      const int column = place.column * T.n + warp.n * T.warp_n();
      store_accumulators<F, type, 16>(params, place.row * T.m + warp.m * T.warp_m(), column,
                                      GlobalScales{params.col_scale + column}, acc);
    });
  }
  // Zeros that were written ahead for a tile that does not exist.
  if constexpr (R == WeightRows::plain) ptx::cp_async_wait_all();
}

}  // namespace octet::cuda
