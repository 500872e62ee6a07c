// The fused INT8 GEMM of the family sm90: operands by TMA, int8 x int8 -> int32 by wgmma, the same
// epilogue as the family sm80. Runs only on Hopper (sm_90a). Decisions and measurements are in
// docs/kernels/hopper.md.
#pragma once

#include "cuda/gemm/epilogue.cuh"
#include "cuda/gemm/mainloop_sm90.cuh"
#include "cuda/gemm/share.cuh"
#include "cuda/ptx/named_barrier.cuh"
#include "cuda/ptx/registers.cuh"
#include "cuda/ptx/shared.cuh"

namespace octet::cuda {

// What follows stages and scales in shared memory.
template <HopperTile T>
struct GroupWords {
  uint64_t turn[T.groups()];  // barriers: the group before this one has issued its tile
  uint32_t arrived[T.groups()];
};
static_assert(sizeof(uint64_t) + sizeof(uint32_t) == HopperTile::kGroupWordBytes);

// A shared tile's accumulators belong to a warpgroup each.
template <HopperTile T>
struct GroupTeam {
  static constexpr int kThreads = kGroupThreads;
  static constexpr int kTeams = T.teams();
  static constexpr int kBlocksPerWorker = T.cluster();
  GroupWords<T>& words;
  int group;
  uint32_t* arrived = &words.arrived[group];
  __device__ int number() const {
    const int rank = T.cluster() == 1 ? 0 : static_cast<int>(ptx::cluster_rank());
    return T.is_pingpong() ? rank : rank * T.groups() + group;
  }
  __device__ int rank() const { return static_cast<int>(threadIdx.x % kGroupThreads); }
  __device__ void sync() const { ptx::named_sync(1 + group, kThreads); }
};

// A warpgroup that multiplies: tile after tile, each with its epilogue.
template <HopperTile T, Fusion F, OutType kType>
__device__ __forceinline__ void multiply_tiles(const GemmParams& params, uint32_t stages,
                                               GroupWords<T>& words, int group) {
  constexpr int kStaggerBarrier = 1 + T.groups();  // behind those of GroupTeam
  Multiplier<T> multiplier(stages, GroupPlace<T>(group));
  WorkList<T.cluster()> list;
  Work work;
  for (int turn = 0; list.next(params, work); ++turn) {
    const int steps = work.k_end - work.k_begin;
    // On tiles that are longer than the pipeline, the first warpgroup cannot be a tile ahead, and
    // never arrives twice for one arrival of the second.
    const bool may_stagger = steps > T.stages;
    typename Multiplier<T>::Accumulators acc;
    if constexpr (T.is_pingpong()) {
      if (turn % T.groups() != group) {
        multiplier.skip(steps);
        continue;
      }
      // A barrier only distinguishes its present phase from the previous one: whoever skips stages
      // must not wait for later ones before the others are done with theirs.
      const auto barrier_of = [&](int g) { return ptx::shared_address(&words.turn[g]); };
      const uint32_t parity = turn / T.groups() & 1;
      ptx::mbarrier_sleep(barrier_of(group), group == 0 ? parity ^ 1 : parity);
      multiplier.template run<0>(
          steps, acc, [] {},
          [&] {
            const int next = group + 1 == T.groups() ? 0 : group + 1;
            if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(barrier_of(next));
          });
    } else if (T.stagger > 0 && group == 0) {
      multiplier.template run<0>(
          steps, acc, [] {},
          [&] {
            if (may_stagger) ptx::named_arrive(kStaggerBarrier, 2 * kGroupThreads);
          });
    } else {
      multiplier.template run<T.stagger>(
          steps, acc,
          [&] {
            if (T.stagger > 0 && may_stagger) ptx::named_sync(kStaggerBarrier, 2 * kGroupThreads);
          },
          [] {});
    }
    const bool all = steps == params.k_steps ||
                     share_accumulators(params, work, GroupTeam<T>{words, group}, acc);
    const ScaleRing<T> scales(stages + T.scale_place(), turn);
    scales.wait();
    if (all) {
      const BlockPlace<T> block(params, work.tile);
      const GroupPlace<T> part(group);
      const unsigned warp = ptx::thread_read_anew() % kGroupThreads / 32;
      const int row = block.row + part.row + static_cast<int>(warp * 16);
      store_accumulators<F, kType, 64>(params, row, block.column + part.column,
                                       SharedScales{scales.stage() + part.column * 4}, acc);
    }
    __syncwarp();  // all lanes have waited, and have their scales
    ScaleRing<T>::release(scales.empty());
  }
}

template <HopperTile T, Fusion F>
__device__ __forceinline__ void run_block(const GemmParams& params, const OperandMaps& maps) {
  static_assert(T.is_sound(), "this tile breaks a rule of HopperTile::is_sound()");
  extern __shared__ __align__(1024) unsigned char shared[];
  auto& words = *reinterpret_cast<GroupWords<T>*>(shared + T.words_place());
  const uint32_t stages = ptx::shared_address(shared);
  if (threadIdx.x == 0) {
    for (auto& barrier : words.turn) ptx::mbarrier_init(ptx::shared_address(&barrier), kGroupWarps);
    Pipeline<T>(stages).init();
    ScaleRing<T>(stages + T.scale_place()).init();
    ptx::mbarrier_publish_init();
  }
  if constexpr (T.cluster() > 1) {
    ptx::cluster_meet();
  } else {
    __syncthreads();
  }
  const int group = static_cast<int>(threadIdx.x / kGroupThreads);
  if (group == T.groups()) {
    // The warpgroups that multiply need the registers for accumulators: two of them take 240 per
    // thread, which leaves 24 here. A single one has enough as it is.
    if constexpr (T.groups() > 1) ptx::give_registers_away<24>();
    const unsigned thread = threadIdx.x - kGroupThreads * T.groups();
    if (thread == 0) fetch<T>(params, maps, Pipeline<T>(stages));
    if (thread == 32) fetch_scales<T>(params, ScaleRing<T>(stages + T.scale_place()));
    __syncwarp();
  } else {
    if constexpr (T.groups() > 1) ptx::take_registers<240>();
    with_out_type(params,
                  [&](auto type) { multiply_tiles<T, F, type>(params, stages, words, group); });
  }
  // No block exits while the other may still arrive at its barriers.
  if constexpr (T.cluster() > 1) ptx::cluster_sync();
}

}  // namespace octet::cuda
