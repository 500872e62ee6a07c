// How keys and values come into shared memory in the attention kernels for mma.sync.
//
// All warps copy (cp.async), into a ring of stages K0 V0 K1 V1 ..., in which they may drift apart:
// one computes exponentials while its neighbour multiplies.
//
// Rows in shared memory are chunks of 16 bytes, swizzled (chunk ^ row % 8) such that the eight rows
// of one ldmatrix phase are in eight different bank groups.
#pragma once

#include "cuda/attention/flash_tile.h"
#include "cuda/ptx/cp_async.cuh"
#include "cuda/ptx/registers.cuh"
#include "cuda/stage_ring.cuh"

namespace octet::cuda {

// This thread's share of the copies of rows: chunk `chunk` of every kStep-th row.
template <int kRowBytes, int kThreads>
struct FlashCopies {
  static constexpr int kChunks = kRowBytes / 16;
  static constexpr int kStep = kThreads / kChunks;
  static_assert((kStep & (kStep - 1)) == 0);

  int row = static_cast<int>(threadIdx.x) / kChunks;
  int chunk = static_cast<int>(threadIdx.x) % kChunks;
  uint32_t place = row * kRowBytes + (chunk ^ (row & 7)) * 16;

  // kRows rows from this thread's first one, of which `left` exist, to shared memory at `to`.
  template <int kRows>
  __device__ __forceinline__ void copy(uint32_t to, const std::byte* from, int64_t stride, int left,
                                       int head_bytes) const {
    static_assert(kRows % kStep == 0);
    const bool in_head = chunk * 16 < head_bytes;
#pragma unroll
    for (int i = 0; i < kRows / kStep; ++i) {
      // row + i kStep has the low bits of both, of which the step is a power of two.
      const uint32_t at = (place ^ (i * kStep & 7) * 16) + i * kStep * kRowBytes;
      ptx::cp_async_16_or_zeros(in_head && i * kStep < left, to + at, from + i * kStep * stride);
    }
  }
};

// Of q and k, and of v.
template <FlashTile T>
using ScoreCopies = FlashCopies<T.score_row_bytes(), T.threads()>;
template <FlashTile T>
using ValueCopies = FlashCopies<T.value_row_bytes(), T.threads()>;

// Bytes of one head's part of a row of q and k, and of v and the result.
template <FlashTile T>
__device__ __forceinline__ int score_head_bytes(const FlashParams& params) {
  return T.int8 ? T.score_row_bytes() : params.head_bytes;
}
template <FlashTile T>
__device__ __forceinline__ int value_head_bytes(const FlashParams& params) {
  return T.int8 ? T.value_row_bytes() : params.head_bytes;
}

// The ring of stages: number 2 i is block i of K, with its scales, number 2 i + 1 that of V.
template <FlashTile T>
class FlashRing {
 public:
  __device__ FlashRing(const FlashParams& params, uint32_t shared, int head, int key_blocks)
      : slots_(shared + T.slot_place(0)),
        key_blocks_(key_blocks),
        ring_(shared + T.barrier_place()) {
    const int64_t k_column = int64_t{head} * score_head_bytes<T>(params) + k_copies_.chunk * 16;
    const int64_t v_column = int64_t{head} * value_head_bytes<T>(params) + v_copies_.chunk * 16;
    k_ = params.k + k_copies_.row * params.k_stride + k_column;
    v_ = params.v + v_copies_.row * params.v_stride + v_column;
    left_k_ = params.keys - k_copies_.row;
    left_v_ = params.keys - v_copies_.row;
    if constexpr (T.int8) {
      scales_ = params.k_scales + head * params.k_scale_stride + threadIdx.x * 4;
    }
  }

  // Sets up the barriers and fills the first stages. What this thread copied before counts as part
  // of the first.
  __device__ void begin(const FlashParams& params) {
    ring_.init();
    fill<0>(params, 0);
    if constexpr (Ring::kAhead > 1) fill<1>(params, 1);
  }

  // Waits until the first stage, and what was copied before it, has arrived; does not take it yet.
  __device__ void wait_for_first() const { ring_.consumer_wait(); }

  // Starts the copies of a later stage, then waits for the present one, which is K (kKind 0) or V
  // (1) of `key_block`, and returns its address.
  template <int kKind>
  __device__ __forceinline__ uint32_t next(const FlashParams& params, int key_block) {
    constexpr int kLater = kKind + Ring::kAhead;
    ring_.go_to(2 * key_block + kKind);
    if (key_block + kLater / 2 < key_blocks_) {
      ring_.producer_acquire();
      fill<kLater % 2>(params, ring_.producer_slot());
    }
    ring_.consumer_wait();
    return place<kKind>(ring_.consumer_slot());
  }
  // Where the scales of the present stage, which is K, are.
  __device__ __forceinline__ uint32_t scales() const { return scale_place(ring_.consumer_slot()); }

  // This warp has read the present stage.
  __device__ __forceinline__ void leave() { ring_.consumer_release(); }

 private:
  using Ring = StageRing<T.stages, T.threads()>;
  static_assert(Ring::kAhead <= 2);

  // Of a slot that holds K (kKind 0) or V (1).
  template <int kKind>
  __device__ __forceinline__ uint32_t place(uint32_t slot) const {
    if constexpr (T.k_bytes() == T.v_bytes()) {
      return slots_ + slot * T.k_bytes();
    } else {
      return slots_ + slot / 2 * (T.k_bytes() + T.v_bytes()) + kKind * T.k_bytes();
    }
  }
  __device__ __forceinline__ uint32_t scale_place(uint32_t slot) const {
    return slots_ + T.scale_place() - T.slot_place(0) + slot / 2 * T.scale_bytes();
  }

  template <int kKind>
  __device__ __forceinline__ void fill(const FlashParams& params, uint32_t slot) {
    const std::byte*& from = kKind == 0 ? k_ : v_;
    int& left = kKind == 0 ? left_k_ : left_v_;
    const int64_t stride = kKind == 0 ? params.k_stride : params.v_stride;
    if constexpr (kKind == 0) {
      k_copies_.template copy<T.keys>(place<0>(slot), from, stride, left,
                                      score_head_bytes<T>(params));
      if constexpr (T.int8) copy_scales(slot);
    } else {
      v_copies_.template copy<T.keys>(place<1>(slot), from, stride, left,
                                      value_head_bytes<T>(params));
    }
    ring_.producer_commit(slot);
    from += T.keys * stride;
    left -= T.keys;
  }

  // Of the keys at k_, four per thread. All four around the last key are read: rows of scales are
  // readable that far, and a mask follows.
  __device__ __forceinline__ void copy_scales(uint32_t slot) {
    const int thread = static_cast<int>(ptx::thread_read_anew());
    if (thread < T.keys / 4) {
      ptx::cp_async_16_or_zeros(thread * 4 < left_k_ + k_copies_.row,
                                scale_place(slot) + thread * 16, scales_);
    }
    scales_ += T.keys;
  }

  ScoreCopies<T> k_copies_;
  ValueCopies<T> v_copies_;
  uint32_t slots_;           // address of the first
  const std::byte *k_, *v_;  // this thread's next copies
  const float* scales_;
  int left_k_, left_v_;  // rows that exist from there on
  int key_blocks_;
  Ring ring_;  // the last: as the first, heads of 128 took six registers more on sm_80
};

}  // namespace octet::cuda
