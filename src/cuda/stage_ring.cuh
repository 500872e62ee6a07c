// A ring of stages in shared memory which all warps of a block both fill (cp.async) and read.
//
// Two barriers per stage, `full` (all copies have arrived) and `empty` (all warps have read it),
// keep the warps together as loosely as the stages allow: one that waits for shared memory, or
// computes something else, leaves the tensor cores to its neighbour. (With one __syncthreads per
// stage the GEMM's tile 128x256x128 reached 862 TOPS instead of 929, m = 16384, n = 24576,
// k = 4608 on an H200.)
#pragma once

#include "cuda/ptx/mbarrier.cuh"

namespace octet::cuda {

// The ring as one warp sees it.
template <int kStages, int kThreads>
class StageRing {
 public:
  // Stages that the copies run ahead. With four or more, one less than possible: the slot that is
  // filled next is then the one before last, which slower warps have left as well (128x256x128,
  // k = 12288: 969 against 907 TOPS).
  static constexpr int kAhead = kStages > 3 ? kStages - 2 : kStages - 1;

  // `barriers`: address of 16 bytes per stage.
  __device__ explicit StageRing(uint32_t barriers) : barriers_(barriers) {}

  // Sets up the barriers. Once, by all threads; then the slots 0 to kAhead - 1 may be filled.
  __device__ void init() {
    if (threadIdx.x == 0) {
#pragma unroll
      for (int slot = 0; slot < kStages; ++slot) {
        ptx::mbarrier_init(full(slot), kThreads);
        ptx::mbarrier_init(empty(slot), kThreads / 32 * ptx::kArrivalsOfWarp);
      }
    }
    __syncthreads();
  }

  // Reads stage `number`, counted from the first, which the caller knows: slot and parity are then
  // not kept in registers.
  __device__ __forceinline__ void go_to(uint32_t number) {
    slot_ = number % kStages;
    parity_ = number / kStages % 2;
  }

  // The slot to fill, kAhead after the one being read.
  __device__ __forceinline__ uint32_t producer_slot() const {
    return slot_ + kAhead - (wraps_ahead() ? kStages : 0);
  }
  // Waits until all warps have read it: as often as it has been filled, or, before the first time,
  // not at all, for which the barrier's parity 1 stands.
  __device__ __forceinline__ void producer_acquire() const {
    ptx::mbarrier_wait(empty(producer_slot()), parity_ ^ (wraps_ahead() ? 0 : 1));
  }
  // This thread has issued its copies into the slot.
  __device__ __forceinline__ void producer_commit(uint32_t slot) const {
    ptx::mbarrier_arrive_after_copies(full(slot));
  }

  // The slot being read.
  __device__ __forceinline__ uint32_t consumer_slot() const { return slot_; }
  __device__ __forceinline__ void consumer_wait() const {
    ptx::mbarrier_wait(full(slot_), parity_);
  }
  // This warp has read it and goes on to the next, which is slot 0 if this returns true.
  __device__ __forceinline__ bool consumer_release() {
    if constexpr (ptx::kEveryLaneArrives) {
      ptx::mbarrier_arrive(empty(slot_));
    } else {
      __syncwarp();
      if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(empty(slot_));
    }
    const bool wraps = slot_ + 1 == kStages;
    slot_ = wraps ? 0 : slot_ + 1;
    parity_ ^= wraps ? 1 : 0;
    return wraps;
  }

 private:
  __device__ __forceinline__ bool wraps_ahead() const { return slot_ + kAhead >= kStages; }
  __device__ __forceinline__ uint32_t full(uint32_t slot) const { return barriers_ + slot * 16; }
  __device__ __forceinline__ uint32_t empty(uint32_t slot) const { return full(slot) + 8; }

  uint32_t barriers_;
  uint32_t slot_ = 0;
  uint32_t parity_ = 0;  // of the slot's barrier `full`
};

}  // namespace octet::cuda
