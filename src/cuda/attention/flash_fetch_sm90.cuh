// Which rows and keys a block of Hopper's attention kernels works on, and the warp that fetches
// them.
#pragma once

#include "cuda/attention/flash_params_sm90.h"
#include "cuda/attention/flash_tile_sm90.h"
#include "cuda/ptx/cluster.cuh"
#include "cuda/ptx/tma.cuh"
#include "cuda/tma_ring.cuh"
#include "cuda/work_list.cuh"

namespace octet::cuda {

// Rings of keys and of values; all warps of all blocks of a cluster read a slot.
template <HopperFlashTile T>
using KeyRing = TmaRing<T.stages, T.k_bytes(), T.k_barriers() - T.k_place(),
                        4 * T.groups * T.cluster, T.cluster>;
template <HopperFlashTile T>
using ValueRing = TmaRing<T.stages, T.v_bytes(), T.v_barriers() - T.v_place(),
                          4 * T.groups * T.cluster, T.cluster>;
// The rows of q: one slot, not shared with other blocks.
template <HopperFlashTile T>
using QueryRing = TmaRing<1, T.q_bytes(), T.q_barriers(), 4 * T.groups, 1>;

// Where this block's part of a worker's tile is.
template <HopperFlashTile T>
struct FlashPlace {
  int head, row;
  int rank = 0;  // in the cluster

  __device__ FlashPlace(const HopperFlashParams& params, int tile) {
    int index;
    if (params.causal) {  // rows that see the most keys first: the last tiles to run are short
      index = params.tiles_per_head - 1 - tile / params.heads;
      head = tile % params.heads;
    } else {  // tiles of one head at about the same time: its keys and values stay in the L2
      head = tile / params.tiles_per_head;
      index = tile % params.tiles_per_head;
    }
    if constexpr (T.cluster > 1) rank = static_cast<int>(ptx::cluster_rank());
    row = (index * T.cluster + rank) * T.rows();
  }
};

// The next part of a tile; for a causal one, the blocks that its last row sees.
template <HopperFlashTile T>
__device__ __forceinline__ bool next_work(const HopperFlashParams& params,
                                          WorkList<T.cluster>& list, Work& work) {
  if (!list.next(params, work)) return false;
  if (params.causal) {
    const int index = params.tiles_per_head - 1 - work.tile / params.heads;
    const int visible = (index + 1) * T.cluster * T.rows();
    work.k_end = min(work.k_end, (visible + T.keys - 1) / T.keys);
  }
  return true;
}

// By one thread.
template <HopperFlashTile T>
__device__ __forceinline__ void fetch_operands(const HopperFlashParams& params,
                                               const FlashMaps& maps, uint32_t shared) {
  constexpr int kScoreBoxes = T.score_boxes() / T.cluster;  // that this block fetches
  constexpr int kValueBoxes = T.value_boxes() / T.cluster;
  constexpr int kValueChannels = T.head_dim / T.cluster;
  constexpr auto kAll = static_cast<uint16_t>((1 << T.cluster) - 1);
  QueryRing<T> queries(shared);
  uint32_t count = 0;  // blocks of keys so far
  WorkList<T.cluster> list;
  Work work;
  while (next_work<T>(params, list, work)) {
    const FlashPlace<T> place(params, work.tile);
    queries.acquire(T.q_bytes());
    ptx::tma_load<false>(queries.stage(), &maps.q, queries.full(), 0, place.row,
                         place.head * T.score_boxes(), 0);
    queries.advance();
    const int kv_head = place.head / params.sharing;
    int key = work.k_begin * T.keys;
    // In the order in which they are read: keys are a block ahead of values.
#pragma unroll 1
    for (int left = work.k_end - work.k_begin; left >= 0; --left, key += T.keys) {
      if (left > 0) {
        const KeyRing<T> keys(shared + T.k_place(), count);
        // Scales end with the last key, rounded up to 16 bytes, the least that TMA copies.
        const uint32_t scale_bytes = T.int8 ? min(T.keys * 4, (params.keys - key + 3) / 4 * 16) : 0;
        keys.acquire(T.k_bytes() + scale_bytes);
        ptx::tma_load<(T.cluster > 1)>(
            keys.stage() + place.rank * kScoreBoxes * T.keys * T.kRowBytes, &maps.k, keys.full(), 0,
            key, kv_head * T.score_boxes() + place.rank * kScoreBoxes, kAll);
        if constexpr (T.int8) {
          ptx::bulk_load(shared + T.scale_place() + keys.slot * T.scale_bytes(),
                         params.k_scale + kv_head * params.k_scale_stride + key, scale_bytes,
                         keys.full());
        }
        ++count;
      }
      if (key > work.k_begin * T.keys) {
        const ValueRing<T> values(shared + T.v_place(), left > 0 ? count - 2 : count - 1);
        values.acquire(T.v_bytes());
        // For BF16, boxes of channels one after the other; for INT8, channels below each other.
        const int channels = T.int8_values ? kv_head * T.head_dim + place.rank * kValueChannels
                                           : kv_head * T.value_boxes() + place.rank * kValueBoxes;
        const int first_key = key - T.keys;
        ptx::tma_load<(T.cluster > 1)>(values.stage() + place.rank * (T.v_bytes() / T.cluster),
                                       &maps.v, values.full(), 0,
                                       T.int8_values ? channels : first_key,
                                       T.int8_values ? first_key / T.keys : channels, kAll);
      }
    }
  }
}

}  // namespace octet::cuda
