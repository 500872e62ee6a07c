// How operands come into shared memory and accumulators into registers on Hopper: one thread
// fetches stage after stage by TMA, warpgroups multiply them by wgmma, and two barriers per stage
// keep them apart. Another thread fetches the scales of a tile's columns, for its epilogue.
#pragma once

#include "cuda/gemm/operand_maps.h"
#include "cuda/gemm/schedule.cuh"
#include "cuda/gemm/tile_sm90.h"
#include "cuda/ptx/cluster.cuh"
#include "cuda/ptx/tma.cuh"
#include "cuda/ptx/wgmma_s8.cuh"
#include "cuda/tma_ring.cuh"

namespace octet::cuda {

// The barriers follow the last stage.
template <HopperTile T>
using Pipeline = TmaRing<T.stages, T.stage_bytes(), T.stages * T.stage_bytes(),
                         kGroupWarps * T.teams(), T.cluster()>;

// Scales of a tile's columns.
template <HopperTile T>
using ScaleRing = TmaRing<T.scale_slots(), T.scale_bytes(), T.scale_slots() * T.scale_bytes(),
                          kGroupWarps * T.groups() / T.scale_slots(), 1>;

// Where this block stands in its cluster.
template <HopperTile T>
struct ClusterPlace {
  int m = 0, n = 0;
  __device__ ClusterPlace() {
    if constexpr (T.cluster() > 1) {
      const auto rank = static_cast<int>(ptx::cluster_rank());
      m = rank % T.cluster_m;
      n = rank / T.cluster_m;
    }
  }
};

// Where this block's part of a worker's tile begins.
template <HopperTile T>
struct BlockPlace {
  int row, column;  // of outputs
  __device__ BlockPlace(const GemmParams& params, int tile) {
    const TilePlace place = place_of(params, tile);
    const ClusterPlace<T> block;
    row = (place.row * T.cluster_m + block.m) * T.m;
    column = (place.column * T.cluster_n + block.n) * T.n;
  }
};

// Fetches this block's share of the operands, running ahead of the multiplications and across the
// borders of tiles, so that the next tile's operands arrive during the epilogue of this one. By one
// thread.
//
// Every other tile goes through k backwards. All workers do so at about the same time, and find in
// the L2 what they read of `a` at the end of the last tile; forwards, the rest of a tile and its
// outputs would have evicted what comes next. (Integer sums are the same in any order.) w is needed
// only by those who multiply it now, so it is evicted first. Measured: docs/kernels/hopper.md.
template <HopperTile T>
__device__ __forceinline__ void fetch(const GemmParams& params, const OperandMaps& maps,
                                      Pipeline<T> pipeline) {
  constexpr int kRowsA = T.m / T.cluster_n;
  constexpr int kRowsW = T.n / T.cluster_m;
  // Every block of a cluster that shares an operand gets what this one fetches of it. (There is one
  // such operand: is_sound() allows two blocks.)
  constexpr auto kAll = static_cast<uint16_t>((1 << T.cluster()) - 1);
  const ClusterPlace<T> block;
  WorkList<T.cluster()> list;
  Work work;
  for (int direction = 1; list.next(params, work); direction = -direction) {
    const BlockPlace<T> place(params, work.tile);
    const int row = place.row + block.n * kRowsA;
    const int column = place.column + block.m * kRowsW;
#pragma unroll 1
    for (int left = work.k_end - work.k_begin, step = direction > 0 ? work.k_begin : work.k_end - 1;
         left > 0; --left, step += direction) {
      const ClusterPlace<T> self;  // read again: this thread has 24 registers
      pipeline.acquire(T.stage_bytes());
      ptx::tma_load<(T.cluster_n > 1)>(pipeline.stage() + self.n * kRowsA * T.k, &maps.a,
                                       pipeline.full(), step * T.k, row, kAll);
      const uint32_t to = pipeline.stage() + T.a_bytes() + self.m * kRowsW * T.k;
      if (params.w_stride == 0) {
        ptx::tma_load<(T.cluster_m > 1)>(to, &maps.w, pipeline.full(), 0, column, step, kAll,
                                         ptx::evict_first_policy());
      } else {
        ptx::tma_load_groups<(T.cluster_m > 1)>(to, &maps.w, pipeline.full(), step * T.k,
                                                column / 32, kAll, ptx::evict_first_policy());
      }
      pipeline.advance();
    }
  }
}

// The same for the scales of a tile's columns, of which those up to the next multiple of eight can
// be read. By another thread: it waits for an epilogue, while operands run ahead.
template <HopperTile T>
__device__ __forceinline__ void fetch_scales(const GemmParams& params, ScaleRing<T> scales) {
  WorkList<T.cluster()> list;
  Work work;
  while (list.next(params, work)) {
    const int column = BlockPlace<T>(params, work.tile).column;
    const int bytes = 4 * max(0, min(T.n, (params.n - column + 7) / 8 * 8));
    scales.acquire(bytes);
    if (bytes > 0) {
      ptx::bulk_load(scales.stage(), params.col_scale + column, bytes, scales.full());
    }
    scales.advance();
  }
}

// Where a warpgroup's part of its block's tile begins.
template <HopperTile T>
struct GroupPlace {
  int row = 0, column = 0;
  __device__ explicit GroupPlace(int group) {
    if constexpr (!T.is_pingpong()) {
      row = group % T.groups_m * T.group_m();
      column = group / T.groups_m * T.group_n();
    }
  }
};

// What one warpgroup multiplies.
template <HopperTile T>
class Multiplier {
 public:
  static constexpr int kRows = T.group_m() / 64;  // blocks of one multiplication
  static constexpr int kColumns = T.group_n() / 8;
  using Accumulators =
      int32_t[kRows][kColumns][4];  // see epilogue.cuh; blocks of rows are 64 apart

  __device__ Multiplier(uint32_t stages, GroupPlace<T> part)
      : pipeline_(stages), a_(part.row * T.k), w_(T.a_bytes() + part.column * T.k) {}

  // Skips stages of another warpgroup.
  __device__ void skip(int steps) { pipeline_.skip(steps); }

  // acc = the next `steps` stages, at least one. Before the last kLast of them, but after the
  // first, `before_last` is called; and when the last has been issued, `issued`.
  template <int kLast, class BeforeLast, class Issued>
  __device__ __forceinline__ void run(int steps, Accumulators& acc, BeforeLast before_last,
                                      Issued issued) {
    uint32_t previous = pipeline_.empty();
    multiply(acc, false);
    const int last = min(kLast, steps - 1);
    add(steps - 1 - last, previous, acc);
    before_last();
    add(last, previous, acc);
    issued();
    ptx::wgmma_wait<0>();
    Pipeline<T>::release(previous);
  }

 private:
  // `previous` is the slot that was multiplied last, now and in the end: it is left when the next
  // one has been issued and the tensor cores have something to do meanwhile.
  __device__ __forceinline__ void add(int steps, uint32_t& previous, Accumulators& acc) {
#pragma unroll 1
    for (; steps > 0; --steps) {
      const uint32_t current = pipeline_.empty();
      multiply(acc, true);
      ptx::wgmma_wait<1>();
      Pipeline<T>::release(previous);
      previous = current;
    }
  }

  __device__ __forceinline__ void multiply(Accumulators& acc, bool adds) {
    pipeline_.wait();
    const uint32_t a = ptx::wgmma_operand(pipeline_.stage() + a_);
    const uint32_t w = ptx::wgmma_operand(pipeline_.stage() + w_);
    ptx::wgmma_fence();
#pragma unroll
    for (int part = 0; part < T.k / 32; ++part) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        ptx::wgmma_64xNx32(acc[i], a + (part * 32 + i * 64 * T.k) / 16, w + part * 32 / 16,
                           adds || part > 0);
      }
    }
    ptx::wgmma_commit();
    pipeline_.advance();
  }

  Pipeline<T> pipeline_;
  uint32_t a_, w_;  // where this warpgroup's rows begin in a stage
};

}  // namespace octet::cuda
