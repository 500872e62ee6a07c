// A ring of stages in shared memory that TMA fills and warps read (Hopper).
//
// A slot has two barriers: `full` (all bytes have arrived) and `empty` (all warps that read it are
// done, including those of the other block of the cluster if one block fetches for both).
#pragma once

#include "cuda/ptx/cluster.cuh"
#include "cuda/ptx/mbarrier.cuh"

namespace octet::cuda {

// A walk over the slots. `kBarriers`: where the barriers lie, 16 bytes for each slot, counted from
// the first slot. `kReaders`: warps that read a slot, in all blocks that share it.
template <int kStages, int kStageBytes, int kBarriers, int kReaders, int kCluster>
struct TmaRing {
  uint32_t stages;  // address of the first slot
  uint32_t slot = 0;
  uint32_t parity = 0;  // of `full`

  __device__ explicit TmaRing(uint32_t stages_) : stages(stages_) {}
  // After the first `count` slots: for callers that count anyway and have no registers to spare.
  __device__ TmaRing(uint32_t stages_, uint32_t count)
      : stages(stages_), slot(count % kStages), parity(count / kStages & 1) {}

  __device__ uint32_t stage() const { return stages + slot * kStageBytes; }
  __device__ uint32_t full() const { return stages + kBarriers + slot * 16; }
  __device__ uint32_t empty() const { return full() + 8; }

  // Called by one thread, which then publishes it (ptx::mbarrier_publish_init).
  __device__ void init() {
    for (slot = 0; slot < kStages; ++slot) {
      ptx::mbarrier_init(full(), 1);
      ptx::mbarrier_init(empty(), kReaders * ptx::kArrivalsOfWarp);
    }
  }

  __device__ __forceinline__ void advance() {
    const bool wraps = slot + 1 == kStages;
    slot = wraps ? 0 : slot + 1;
    parity ^= wraps ? 1 : 0;
  }
  __device__ __forceinline__ void skip(uint32_t steps) {
    const uint32_t to = slot + steps;
    parity ^= to / kStages & 1;
    slot = to % kStages;
  }

  // For the fetching thread: waits until the slot may be filled, and announces this many bytes.
  __device__ __forceinline__ void acquire(uint32_t bytes) const {
    ptx::mbarrier_sleep(empty(), parity ^ 1);
    ptx::mbarrier_expect(full(), bytes);
  }
  // For readers: waits until the slot's bytes have arrived.
  __device__ __forceinline__ void wait() const { ptx::mbarrier_sleep(full(), parity); }
  // This warp has read the slot of this barrier `empty`.
  __device__ __forceinline__ static void release(uint32_t barrier) {
    const uint32_t lane = threadIdx.x % 32;
    if constexpr (ptx::kEveryLaneArrives) {
      const uint32_t own = kCluster == 1 ? 0 : ptx::cluster_rank();
      ptx::mbarrier_arrive(barrier);
      for (uint32_t block = 0; block < kCluster; ++block) {
        if (block != own) ptx::mbarrier_arrive_at(barrier, block);
      }
    } else if constexpr (kCluster == 1) {
      if (lane == 0) ptx::mbarrier_arrive(barrier);
    } else {
      if (lane < kCluster) ptx::mbarrier_arrive_at(barrier, lane);
    }
  }
};

}  // namespace octet::cuda
