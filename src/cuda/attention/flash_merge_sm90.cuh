// Tiles whose keys several workers share: each leaves its weighted sums in memory, with the maximum
// and the sum of weights that they are relative to; the last to arrive merges them. It reads all of
// them in the order of the keys, its own included, so that the bits do not depend on who was last.
#pragma once

#include "cuda/attention/flash_params_sm90.h"
#include "cuda/attention/online_softmax.cuh"
#include "cuda/ptx/named_barrier.cuh"
#include "cuda/work_list.cuh"

namespace octet::cuda {

// A warpgroup's share of a tile. `team`: which one of the worker's kTeams; `arrived`: a word of
// shared memory of its own; `barrier`: a named barrier of its own.
template <int kTeams, int kCluster, int kBlocks>
struct FlashMerge {
  static constexpr int kThreads = 128;
  static constexpr int kVectors = kBlocks + 1;  // the accumulators, then maxima and sums
  using Workers = cuda::Workers<kCluster>;

  const HopperFlashParams& params;
  int team;
  uint32_t* arrived;
  int barrier;

  // True for the last to arrive, which then has the merged result.
  __device__ bool run(const Work& work, OnlineSoftmax& softmax, float (&acc)[kBlocks][4]) const {
    const int rank = static_cast<int>(threadIdx.x % kThreads);
    const int index = work.tile - params.whole_tiles;
    const auto steps = static_cast<uint32_t>(work.k_end - work.k_begin);
    const auto all = static_cast<uint32_t>(params.k_steps);
    uint32_t* arrivals = params.arrivals + index * kTeams + team;
    float4* ours = place(Workers::self(), work.k_begin == 0, rank);
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) {
      __stcg(ours + j * kThreads, make_float4(acc[j][0], acc[j][1], acc[j][2], acc[j][3]));
    }
    __stcg(ours + kBlocks * kThreads,
           make_float4(softmax.shift[0], softmax.shift[1], softmax.total[0], softmax.total[1]));
    __threadfence();
    ptx::named_sync(barrier, kThreads);
    if (rank == 0) {
      *arrived = atomicAdd(arrivals, steps);
      __threadfence();
    }
    ptx::named_sync(barrier, kThreads);
    if (*arrived + steps != all) return false;
    if (rank == 0) *arrivals = 0;

    const SharedSteps shared(params, Workers::count());
    const uint32_t first_step = index * all;
    const uint32_t first_worker = shared.worker_of(first_step);
    const uint32_t last_worker = shared.worker_of(first_step + all - 1);
    const auto state = [&](uint32_t worker) -> const float4* {  // null: it has no step of this tile
      const uint32_t begin = shared.first_of(worker);
      if (begin == shared.first_of(worker + 1)) return nullptr;
      return place(worker, begin <= first_step, rank);
    };
    float largest[2] = {-INFINITY, -INFINITY};
    for (uint32_t worker = first_worker; worker <= last_worker; ++worker) {
      const float4* from = state(worker);
      if (from == nullptr) continue;
      const float4 rows = __ldcg(from + kBlocks * kThreads);
      largest[0] = fmaxf(largest[0], rows.x);
      largest[1] = fmaxf(largest[1], rows.y);
    }
    softmax.total[0] = softmax.total[1] = 0;
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) acc[j][0] = acc[j][1] = acc[j][2] = acc[j][3] = 0;
    for (uint32_t worker = first_worker; worker <= last_worker; ++worker) {
      const float4* from = state(worker);
      if (from == nullptr) continue;
      const float4 rows = __ldcg(from + kBlocks * kThreads);
      float weight[2];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        softmax.shift[h] = largest[h];
        const float finite = largest[h] == -INFINITY ? 0.0f : largest[h];
        weight[h] = ptx::exp2_approx(__fsub_rn(h == 0 ? rows.x : rows.y, finite));
        softmax.total[h] = __fmaf_rn(h == 0 ? rows.z : rows.w, weight[h], softmax.total[h]);
      }
#pragma unroll
      for (int j = 0; j < kBlocks; ++j) {
        const float4 more = __ldcg(from + j * kThreads);
        acc[j][0] = __fmaf_rn(more.x, weight[0], acc[j][0]);
        acc[j][1] = __fmaf_rn(more.y, weight[0], acc[j][1]);
        acc[j][2] = __fmaf_rn(more.z, weight[1], acc[j][2]);
        acc[j][3] = __fmaf_rn(more.w, weight[1], acc[j][3]);
      }
    }
    return true;
  }

 private:
  // A worker has at most two parts of tiles: one that begins inside a tile, one that begins one.
  __device__ float4* place(uint32_t worker, bool begins, int rank) const {
    const int64_t part = 2 * worker + (begins ? 1 : 0);
    return reinterpret_cast<float4*>(params.partials) +
           (part * kTeams + team) * (kVectors * kThreads) + rank;
  }
};

}  // namespace octet::cuda
