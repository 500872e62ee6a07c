// Attention in one kernel, for sm_80 and everything newer: scores never leave the registers.
//
// A warp owns 16 rows of q and all columns of their output. For each block of keys it computes the
// scores S = Q K^T, moves its running maximum, P = 2^(S - maximum) (rounded to BF16), and adds P V
// to the output, which is divided by the sum of P at the end. What mma.sync leaves in a lane's
// registers as S is what it wants there as P, so P needs no exchange.
//
// All warps copy (cp.async), into a ring of stages K0 V0 K1 V1 ..., in which they may drift apart:
// one computes exponentials while its neighbour multiplies.
//
// Rows in shared memory are chunks of 16 bytes, exchanged (chunk ^ row % 8) such that the eight
// rows of one ldmatrix phase lie in eight different bank groups.
#pragma once

#include "cuda/attention/flash_tile.h"
#include "cuda/attention/online_softmax.cuh"
#include "cuda/attention/scores.cuh"
#include "cuda/ptx/cp_async.cuh"
#include "cuda/ptx/ldmatrix.cuh"
#include "cuda/ptx/mma_bf16.cuh"
#include "cuda/ptx/mma_s8.cuh"
#include "cuda/ptx/shared.cuh"
#include "cuda/rows/row_ptx.cuh"
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

  // Until the first stage, and what was copied before it, is there. Not its turn yet.
  __device__ void wait_for_first() const { ring_.consumer_wait(); }

  // Starts the copies of a later stage, then waits for the present one, which is K (kKind 0) or V
  // (1) of `key_block`: the address where it lies.
  template <int kKind>
  __device__ __forceinline__ uint32_t next(const FlashParams& params, int key_block) {
    constexpr int kLater = kKind + Ring::kAhead;
    if (key_block + kLater / 2 < key_blocks_) {
      ring_.producer_acquire();
      fill<kLater % 2>(params, ring_.producer_slot());
    }
    ring_.consumer_wait();
    return place<kKind>(ring_.consumer_slot());
  }
  // Where the scales of the present stage, which is K, lie.
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

  // Of the keys that k_ is at, four per thread. Of the four around the last key all are read: rows
  // of scales are readable that far, and a mask follows.
  __device__ __forceinline__ void copy_scales(uint32_t slot) {
    const int thread = static_cast<int>(threadIdx.x);
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

// One warp's 16 rows. A lane, g = lane / 4 and t = lane % 4, has of a row of 8 columns those
// numbered 2 t and 2 t + 1, of rows g (elements 0, 1) and g + 8 (2, 3).
template <FlashTile T>
class FlashWarp {
 public:
  // `q`: address of the block's rows of q.
  __device__ explicit FlashWarp(uint32_t q) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    // q: rows 0-7 and 8-15 of the first 16 bytes, then of the second. k: both halves of 8 rows,
    // then of the next 8. v: rows 0-7 and 8-15 of 8 columns, then of the next 8.
    q_ = q + (warp * 16 + lane % 16) * T.score_row_bytes() + (lane / 16 ^ lane % 8) * 16;
    k_ = (lane / 16 * 8 + lane % 8) * T.score_row_bytes() + (lane / 8 % 2 ^ lane % 8) * 16;
    v_ = lane % 16 * T.value_row_bytes() + (lane / 16 ^ lane % 8) * 16;
  }

  // Where they stay in registers: once, when they are in shared memory.
  __device__ __forceinline__ void load_queries() {
#pragma unroll
    for (int part = 0; part < kQueryParts; ++part) {
      ptx::ldmatrix_x4(queries_[part], at(q_, part));
    }
  }

  // scores_ = Q K^T, in INT8 without any scales
  __device__ __forceinline__ void multiply_keys(uint32_t keys) {
    constexpr int kPairs = T.keys / 16, kSteps = kScoreParts * kPairs;
    const uint32_t from = keys + k_;
    uint32_t k[kBuffers][4];
    const auto load = [&](int step) {
      ptx::ldmatrix_x4(k[step % kBuffers],
                       at(from, step / kPairs) + step % kPairs * 16 * T.score_row_bytes());
    };
    if constexpr (!T.keeps_queries()) ptx::ldmatrix_x4(queries_[0], q_);
#pragma unroll
    for (int step = 0; step < kBuffers - 1; ++step) load(step);
    scores_.begin();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int part = step / kPairs, pair = step % kPairs;
      if (step + kBuffers - 1 < kSteps) load(step + kBuffers - 1);
      if (!T.keeps_queries() && pair == 0 && part + 1 < kScoreParts) {
        ptx::ldmatrix_x4(queries_[(part + 1) % kQueryParts], at(q_, part + 1));
      }
      const uint32_t(&a)[4] = queries_[part % kQueryParts];
      const uint32_t(&b)[4] = k[step % kBuffers];
      multiply(scores_.raw()[2 * pair], a, b[0], b[1]);
      multiply(scores_.raw()[2 * pair + 1], a, b[2], b[3]);
    }
  }

  // `scales`: address of the keys' scales.
  __device__ __forceinline__ void scale(uint32_t scales) { scores_.scale(scales); }

  // Takes away the keys that a row does not see: those from ends[h] on of rows g and g + 8.
  __device__ __forceinline__ void mask(const int (&ends)[2]) {
    mask_scores(scores_.values(), ends);
  }

  // scores_ become weights; the accumulators so far follow them.
  __device__ __forceinline__ void weigh(const float (&scale_log2)[2]) {
    float rescale[2];
    softmax_.update(scores_.values(), scale_log2, rescale);
    rescale_accumulators(acc_, rescale);
  }

  // acc_ += P V
  __device__ __forceinline__ void multiply_values(uint32_t values) {
    constexpr int kParts = T.keys / 16, kPairs = T.head_dim / 16, kSteps = kParts * kPairs;
    const uint32_t from = values + v_;
    uint32_t v[kBuffers][4];
    const auto load = [&](int step) {
      ptx::ldmatrix_x4_transposed(
          v[step % kBuffers], at(from, step % kPairs) + step / kPairs * 16 * T.value_row_bytes());
    };
#pragma unroll
    for (int step = 0; step < kBuffers - 1; ++step) load(step);
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const float(&low)[4] = scores_.values()[2 * part];
      const float(&high)[4] = scores_.values()[2 * part + 1];
      const uint32_t p[4] = {pack_bf16(low[0], low[1]), pack_bf16(low[2], low[3]),
                             pack_bf16(high[0], high[1]), pack_bf16(high[2], high[3])};
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) {
        const int step = part * kPairs + pair;
        if (step + kBuffers - 1 < kSteps) load(step + kBuffers - 1);
        const uint32_t(&b)[4] = v[step % kBuffers];
        ptx::mma_16x8x16(acc_[2 * pair], p, b[0], b[1]);
        ptx::mma_16x8x16(acc_[2 * pair + 1], p, b[2], b[3]);
      }
    }
  }

  // The result, through this warp's part of `shared`, which nobody else reads, to `out`, where
  // `left` rows of it exist: whole lines are written at once.
  __device__ void store(std::byte* shared, std::byte* out, int64_t stride, int left,
                        int head_bytes) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    std::byte* rows = shared + warp * 16 * T.value_row_bytes();
    __syncwarp();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float inverse = softmax_.inverse_total(h);
      std::byte* row = rows + (lane / 4 + 8 * h) * T.value_row_bytes() + lane % 4 * 4;
#pragma unroll
      for (int n = 0; n < T.head_dim / 8; ++n) {
        *reinterpret_cast<uint32_t*>(row + (n ^ lane / 4) * 16) =
            pack_bf16(__fmul_rn(acc_[n][2 * h], inverse), __fmul_rn(acc_[n][2 * h + 1], inverse));
      }
    }
    __syncwarp();
    constexpr int kChunks = T.value_row_bytes() / 16;
#pragma unroll 4
    for (int i = lane; i < 16 * kChunks; i += 32) {
      const int row = i / kChunks, chunk = i % kChunks;
      if (row < left && chunk * 16 < head_bytes) {
        store_vector(out + row * stride + chunk * 16,
                     *reinterpret_cast<const uint4*>(rows + row * T.value_row_bytes() +
                                                     (chunk ^ (row & 7)) * 16));
      }
    }
  }

 private:
  static constexpr int kBuffers = 3;  // fragments of K or V: loads run two ahead
  static constexpr int kScoreParts = T.score_row_bytes() / 32;  // of a row, as one product takes it
  static constexpr int kQueryParts = T.keeps_queries() ? kScoreParts : 2;  // in registers

  __device__ __forceinline__ static void multiply(float (&acc)[4], const uint32_t (&a)[4],
                                                  uint32_t b0, uint32_t b1) {
    ptx::mma_16x8x16(acc, a, b0, b1);
  }
  __device__ __forceinline__ static void multiply(int32_t (&acc)[4], const uint32_t (&a)[4],
                                                  uint32_t b0, uint32_t b1) {
    ptx::mma_16x8x32(acc, a, b0, b1);
  }

  // Chunks 2 pair and 2 pair + 1 of a row, whose chunks 0 and 1 lie at `row`. Chunks are exchanged
  // in eights: four addresses serve all, the rest is a constant part of the instruction.
  __device__ static uint32_t at(uint32_t row, int pair) {
    return (row ^ pair % 4 * 32) + pair / 4 * 128;
  }

  uint32_t q_, k_, v_;  // this lane's first rows; k_ and v_ from the beginning of a stage
  OnlineSoftmax softmax_;
  uint32_t queries_[kQueryParts][4];
  ScoresOf<T.int8, T.keys / 8> scores_;
  float acc_[T.head_dim / 8][4] = {};
};

// A block's work.
template <FlashTile T>
__device__ __forceinline__ void run_flash(const FlashParams& params) {
  static_assert(T.is_sound(), "this tile breaks a rule of FlashTile::is_sound()");
  // Addresses of chunks are changed by exclusive or: rows begin at multiples of their size.
  extern __shared__ __align__(1024) std::byte shared_bytes[];
  const uint32_t shared = ptx::shared_address(shared_bytes);
  const int head = static_cast<int>(blockIdx.y);
  // Rows that see the most keys first: the last blocks to run are then short.
  const int first_row =
      static_cast<int>(params.causal ? gridDim.x - 1 - blockIdx.x : blockIdx.x) * T.rows;
  const int visible = params.causal ? min(params.keys, first_row + T.rows) : params.keys;
  const int key_blocks = (visible + T.keys - 1) / T.keys;
  const uint32_t q = shared + T.q_place();
  {
    const ScoreCopies<T> copies;
    const int row = first_row + copies.row;
    copies.template copy<T.rows>(q,
                                 params.q + row * params.q_stride +
                                     int64_t{head} * score_head_bytes<T>(params) +
                                     copies.chunk * 16,
                                 params.q_stride, params.rows - row, score_head_bytes<T>(params));
  }
  FlashRing<T> ring(params, shared, head / params.sharing, key_blocks);
  ring.begin(params);
  FlashWarp<T> warp(q);
  if constexpr (T.keeps_queries()) {
    ring.wait_for_first();
    warp.load_queries();
    __syncthreads();  // from here on the last slot is V's
  }
  const int warp_row = first_row + static_cast<int>(threadIdx.x) / 32 * 16;
  float scale_log2[2] = {params.scale_log2, params.scale_log2};
  if constexpr (T.int8) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = warp_row + static_cast<int>(threadIdx.x) % 32 / 4 + 8 * h;
      const float q_scale =
          row < params.rows ? params.q_scales[head * params.q_scale_stride + row] : 0;
      scale_log2[h] = row_scale_log2(q_scale, params.scale_log2);
    }
  }
#pragma unroll 1
  for (int key_block = 0; key_block < key_blocks; ++key_block) {
    warp.multiply_keys(ring.template next<0>(params, key_block));
    if constexpr (T.int8) warp.scale(ring.scales());
    ring.leave();
    const int first_key = key_block * T.keys;
    const int fewest = params.causal ? min(params.keys, warp_row + 1) : params.keys;
    if (first_key + T.keys > fewest) {
      const int row = warp_row + static_cast<int>(threadIdx.x) % 32 / 4;
      const int most = params.keys - first_key;
      warp.mask({params.causal ? min(most, row + 1 - first_key) : most,
                 params.causal ? min(most, row + 9 - first_key) : most});
    }
    warp.weigh(scale_log2);
    warp.multiply_values(ring.template next<1>(params, key_block));
    ring.leave();
  }
  if constexpr (T.keeps_queries()) __syncthreads();  // no warp reads the ring any more
  warp.store(
      shared_bytes,
      params.out + warp_row * params.out_stride + int64_t{head} * value_head_bytes<T>(params),
      params.out_stride, params.rows - warp_row, value_head_bytes<T>(params));
}

}  // namespace octet::cuda
