// The fused INT8 GEMM of the family sm80: int8 x int8 -> int32 by mma.sync, scales, bias or
// activation and one rounding in the epilogue. Runs on sm_80 and everything newer.
#pragma once

#include "cuda/gemm/epilogue.cuh"
#include "cuda/gemm/mainloop_sm80.cuh"
#include "cuda/gemm/schedule.cuh"

namespace octet::cuda {

// This block's sums of a shared tile. True for the last block to arrive: it gets all the sums.
// A block has at most two parts of tiles, one that begins inside a tile and one that begins with
// it, so it has two places for partial sums.
template <Tile T>
__device__ bool share_sums(const GemmParams& params, const Work& work,
                           typename Mainloop<T>::Sums& sums) {
  __shared__ uint32_t arrived;
  constexpr int kVectors = sizeof(sums) / sizeof(int4);
  const int index = work.tile - params.whole_tiles;
  const auto steps = static_cast<uint32_t>(work.k_end - work.k_begin);
  const auto all = static_cast<uint32_t>(params.k_steps);
  auto* vectors = reinterpret_cast<int4*>(&sums[0][0][0]);
  const auto place = [&](uint32_t block, bool begins) {
    return reinterpret_cast<int4*>(params.partial_sums) +
           static_cast<int64_t>(2 * block + (begins ? 1 : 0)) * (T.m * T.n / 4) + threadIdx.x;
  };

  // If the others are all there, nobody will ask for ours. Worth a look (a trip to L2) when storing
  // takes longer than looking.
  constexpr bool kLook = T.m * T.n > 128 * 128;
  if constexpr (kLook) {
    __syncthreads();  // `arrived` of the last shared tile has been read
    if (threadIdx.x == 0) arrived = *static_cast<volatile uint32_t*>(params.arrivals + index);
    __syncthreads();
  }
  if (!kLook || arrived + steps != all) {
    int4* ours = place(blockIdx.x, work.k_begin == 0);
#pragma unroll
    for (int i = 0; i < kVectors; ++i) __stcg(ours + i * T.threads(), vectors[i]);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) arrived = atomicAdd(params.arrivals + index, steps);
    __syncthreads();
    if (arrived + steps != all) return false;
  }
  __threadfence();
  if (threadIdx.x == 0) params.arrivals[index] = 0;

  const SharedSteps shared(params);
  const uint32_t first_step = index * all;
  const uint32_t last_block = shared.block_of(first_step + all - 1);
  const auto theirs = [&](uint32_t block) -> const int4* {  // null when there is nothing to add
    const uint32_t begin = shared.first_of(block);
    const bool has_sums = block != blockIdx.x && begin != shared.first_of(block + 1);
    return has_sums ? place(block, begin <= first_step) : nullptr;
  };
  const auto add = [](int4& to, const int4& more) {
    to.x += more.x, to.y += more.y, to.z += more.z, to.w += more.w;
  };
  uint32_t block = shared.block_of(first_step);
  if constexpr (kVectors <= 16) {
    // A chain of trips to L2, so the sums of small tiles come from two blocks at a time.
    for (; block < last_block; block += 2) {
      const int4* first = theirs(block);
      const int4* second = theirs(block + 1);
      int4 more[2][kVectors];
#pragma unroll
      for (int i = 0; i < kVectors; ++i) {
        more[0][i] = first != nullptr ? __ldcg(first + i * T.threads()) : int4{};
        more[1][i] = second != nullptr ? __ldcg(second + i * T.threads()) : int4{};
      }
#pragma unroll
      for (int i = 0; i < kVectors; ++i) add(vectors[i], more[0][i]), add(vectors[i], more[1][i]);
    }
  }
  for (; block <= last_block; ++block) {
    const int4* from = theirs(block);
    if (from == nullptr) continue;
#pragma unroll
    for (int i = 0; i < kVectors; ++i) add(vectors[i], __ldcg(from + i * T.threads()));
  }
  return true;
}

// The sums of warps that share outputs and differ in k. True for the warps that get them.
template <Tile T>
__device__ bool add_slices(int32_t* slices, typename Mainloop<T>::Sums& sums) {
  constexpr int kCount = sizeof(sums) / sizeof(int32_t);
  constexpr int kThreads = T.threads() / T.warps_k;
  auto* flat = &sums[0][0][0];
  const WarpPlace<T> warp;
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

template <Tile T, Fusion F>
__device__ __forceinline__ void run_block(const GemmParams& params) {
  static_assert(T.is_sound(), "this tile breaks a rule of Tile::is_sound()");
  extern __shared__ __align__(128) unsigned char stages[];
  __shared__ uint64_t barriers[2 * T.stages];
  Mainloop<T> mainloop(params, ptx::shared_address(stages), ptx::shared_address(barriers));
  mainloop.begin(params);
  WorkList list;
  Work work;
  while (list.next(params, work)) {
    typename Mainloop<T>::Sums sums = {};
    const int steps = work.k_end - work.k_begin;
    mainloop.run(params, steps, sums);
    if constexpr (T.warps_k > 1) {
      auto* slices = reinterpret_cast<int32_t*>(stages + T.stages * T.stage_bytes());
      if (!add_slices<T>(slices, sums)) continue;
    } else {
      if (steps < params.k_steps && !share_sums<T>(params, work, sums)) continue;
    }
    finish_tile<T, F>(params, place_of(params, work.tile), sums);
  }
}

}  // namespace octet::cuda
