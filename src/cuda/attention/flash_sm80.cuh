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
#include "cuda/ptx/cp_async.cuh"
#include "cuda/ptx/ldmatrix.cuh"
#include "cuda/ptx/mma_bf16.cuh"
#include "cuda/ptx/shared.cuh"
#include "cuda/rows/row_ptx.cuh"
#include "cuda/stage_ring.cuh"

namespace octet::cuda {

// This thread's share of the copies of `T.keys` or more rows: chunk `chunk` of every kStep-th row.
template <FlashTile T>
struct FlashCopies {
  static constexpr int kChunks = T.row_bytes() / 16;
  static constexpr int kStep = T.threads() / kChunks;
  static_assert((kStep & (kStep - 1)) == 0 && T.keys % kStep == 0 && T.rows % kStep == 0);

  int row = static_cast<int>(threadIdx.x) / kChunks;
  int chunk = static_cast<int>(threadIdx.x) % kChunks;
  uint32_t place = row * T.row_bytes() + (chunk ^ (row & 7)) * 16;

  // kRows rows from this thread's first one, of which `left` exist, to shared memory at `to`.
  template <int kRows>
  __device__ __forceinline__ void copy(uint32_t to, const std::byte* from, int64_t stride, int left,
                                       int head_bytes) const {
    const bool in_head = chunk * 16 < head_bytes;
#pragma unroll
    for (int i = 0; i < kRows / kStep; ++i) {
      // row + i kStep has the low bits of both, of which the step is a power of two.
      const uint32_t at = (place ^ (i * kStep & 7) * 16) + i * kStep * T.row_bytes();
      ptx::cp_async_16_or_zeros(in_head && i * kStep < left, to + at, from + i * kStep * stride);
    }
  }
};

// The ring of stages: number 2 i is block i of K, number 2 i + 1 that of V.
template <FlashTile T>
class FlashRing {
 public:
  __device__ FlashRing(const FlashParams& params, uint32_t stages, int head, int key_blocks)
      : stages_(stages), key_blocks_(key_blocks), ring_(stages + T.stages * T.stage_bytes()) {
    const int64_t column = int64_t{head} * params.head_bytes + copies_.chunk * 16;
    k_ = params.k + copies_.row * params.k_stride + column;
    v_ = params.v + copies_.row * params.v_stride + column;
    left_k_ = left_v_ = params.keys - copies_.row;
  }

  // Sets up the barriers and fills the first stages. What this thread copied before counts as part
  // of the first.
  __device__ void begin(const FlashParams& params) {
    ring_.init();
    fill<0>(params, 0);
    if constexpr (Ring::kAhead > 1) fill<1>(params, 1);
  }

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
    return stages_ + ring_.consumer_slot() * T.stage_bytes();
  }

  // This warp has read the present stage.
  __device__ __forceinline__ void leave() { ring_.consumer_release(); }

 private:
  using Ring = StageRing<T.stages, T.threads()>;
  static_assert(T.stages >= 2 && Ring::kAhead <= 2);

  template <int kKind>
  __device__ __forceinline__ void fill(const FlashParams& params, uint32_t slot) {
    const std::byte*& from = kKind == 0 ? k_ : v_;
    int& left = kKind == 0 ? left_k_ : left_v_;
    const int64_t stride = kKind == 0 ? params.k_stride : params.v_stride;
    copies_.template copy<T.keys>(stages_ + slot * T.stage_bytes(), from, stride, left,
                                  params.head_bytes);
    ring_.producer_commit(slot);
    from += T.keys * stride;
    left -= T.keys;
  }

  FlashCopies<T> copies_;
  uint32_t stages_;
  const std::byte *k_, *v_;  // this thread's next copies
  int left_k_, left_v_;      // rows that exist from there on
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
    q_ = q + (warp * 16 + lane % 16) * T.row_bytes() + (lane / 16 ^ lane % 8) * 16;
    k_ = (lane / 16 * 8 + lane % 8) * T.row_bytes() + (lane / 8 % 2 ^ lane % 8) * 16;
    v_ = lane % 16 * T.row_bytes() + (lane / 16 ^ lane % 8) * 16;
  }

  // scores_ = Q K^T
  __device__ __forceinline__ void multiply_keys(uint32_t keys) {
    constexpr int kParts = T.head_dim / 16, kPairs = T.keys / 16, kSteps = kParts * kPairs;
    const uint32_t from = keys + k_;
    uint32_t q[2][4], k[kBuffers][4];
    const auto load = [&](int step) {
      ptx::ldmatrix_x4(k[step % kBuffers],
                       at(from, step / kPairs) + step % kPairs * 16 * T.row_bytes());
    };
    ptx::ldmatrix_x4(q[0], q_);
#pragma unroll
    for (int step = 0; step < kBuffers - 1; ++step) load(step);
#pragma unroll
    for (int n = 0; n < T.keys / 8; ++n) {
#pragma unroll
      for (int c = 0; c < 4; ++c) scores_[n][c] = 0;
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int part = step / kPairs, pair = step % kPairs;
      if (step + kBuffers - 1 < kSteps) load(step + kBuffers - 1);
      if (pair == 0 && part + 1 < kParts) {
        ptx::ldmatrix_x4(q[(part + 1) % 2], at(q_, part + 1));
      }
      const uint32_t(&b)[4] = k[step % kBuffers];
      ptx::mma_16x8x16(scores_[2 * pair], q[part % 2], b[0], b[1]);
      ptx::mma_16x8x16(scores_[2 * pair + 1], q[part % 2], b[2], b[3]);
    }
  }

  // Takes away the keys that a row does not see: those from ends[h] on of rows g and g + 8.
  __device__ __forceinline__ void mask(const int (&ends)[2]) { mask_scores(scores_, ends); }

  // scores_ become weights; the accumulators so far follow them.
  __device__ __forceinline__ void weigh(float scale_log2) {
    float rescale[2];
    softmax_.update(scores_, {scale_log2, scale_log2}, rescale);
    rescale_accumulators(acc_, rescale);
  }

  // acc_ += P V
  __device__ __forceinline__ void multiply_values(uint32_t values) {
    constexpr int kParts = T.keys / 16, kPairs = T.head_dim / 16, kSteps = kParts * kPairs;
    const uint32_t from = values + v_;
    uint32_t v[kBuffers][4];
    const auto load = [&](int step) {
      ptx::ldmatrix_x4_transposed(v[step % kBuffers],
                                  at(from, step % kPairs) + step / kPairs * 16 * T.row_bytes());
    };
#pragma unroll
    for (int step = 0; step < kBuffers - 1; ++step) load(step);
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const float(&low)[4] = scores_[2 * part];
      const float(&high)[4] = scores_[2 * part + 1];
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

  // The result, over this warp's rows of q in `shared`, which nobody else reads, to `out`, where
  // `left` rows of them exist: whole lines are written at once.
  __device__ void store(std::byte* shared, std::byte* out, int64_t stride, int left,
                        int head_bytes) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    std::byte* rows = shared + warp * 16 * T.row_bytes();
    __syncwarp();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float inverse = softmax_.inverse_total(h);
      std::byte* row = rows + (lane / 4 + 8 * h) * T.row_bytes() + lane % 4 * 4;
#pragma unroll
      for (int n = 0; n < T.head_dim / 8; ++n) {
        *reinterpret_cast<uint32_t*>(row + (n ^ lane / 4) * 16) =
            pack_bf16(__fmul_rn(acc_[n][2 * h], inverse), __fmul_rn(acc_[n][2 * h + 1], inverse));
      }
    }
    __syncwarp();
    constexpr int kChunks = T.row_bytes() / 16;
#pragma unroll 4
    for (int i = lane; i < 16 * kChunks; i += 32) {
      const int row = i / kChunks, chunk = i % kChunks;
      if (row < left && chunk * 16 < head_bytes) {
        store_vector(
            out + row * stride + chunk * 16,
            *reinterpret_cast<const uint4*>(rows + row * T.row_bytes() + (chunk ^ (row & 7)) * 16));
      }
    }
  }

 private:
  static constexpr int kBuffers = 3;  // fragments of K or V: loads run two ahead

  // Chunks 2 pair and 2 pair + 1 of a row, whose chunks 0 and 1 lie at `row`. Chunks are exchanged
  // in eights: four addresses serve all, the rest is a constant part of the instruction.
  __device__ static uint32_t at(uint32_t row, int pair) {
    return (row ^ pair % 4 * 32) + pair / 4 * 128;
  }

  uint32_t q_, k_, v_;  // this lane's first rows; k_ and v_ from the beginning of a stage
  OnlineSoftmax softmax_;
  float scores_[T.keys / 8][4];
  float acc_[T.head_dim / 8][4] = {};
};

// A block's work.
template <FlashTile T>
__device__ __forceinline__ void run_flash(const FlashParams& params) {
  // Addresses of chunks are changed by exclusive or: rows begin at multiples of their size.
  extern __shared__ __align__(1024) std::byte shared[];
  const int head = static_cast<int>(blockIdx.y);
  // Rows that see the most keys first: the last blocks to run are then short.
  const int first_row =
      static_cast<int>(params.causal ? gridDim.x - 1 - blockIdx.x : blockIdx.x) * T.rows;
  const int visible = params.causal ? min(params.keys, first_row + T.rows) : params.keys;
  const int key_blocks = (visible + T.keys - 1) / T.keys;
  const uint32_t q = ptx::shared_address(shared);
  {
    const FlashCopies<T> copies;
    const int row = first_row + copies.row;
    copies.template copy<T.rows>(
        q, params.q + row * params.q_stride + int64_t{head} * params.head_bytes + copies.chunk * 16,
        params.q_stride, params.rows - row, params.head_bytes);
  }
  FlashRing<T> ring(params, q + T.q_bytes(), head / params.sharing, key_blocks);
  ring.begin(params);
  FlashWarp<T> warp(q);
  const int warp_row = first_row + static_cast<int>(threadIdx.x) / 32 * 16;
#pragma unroll 1
  for (int key_block = 0; key_block < key_blocks; ++key_block) {
    warp.multiply_keys(ring.template next<0>(params, key_block));
    ring.leave();
    const int first_key = key_block * T.keys;
    const int fewest = params.causal ? min(params.keys, warp_row + 1) : params.keys;
    if (first_key + T.keys > fewest) {
      const int row = warp_row + static_cast<int>(threadIdx.x) % 32 / 4;
      const int most = params.keys - first_key;
      warp.mask({params.causal ? min(most, row + 1 - first_key) : most,
                 params.causal ? min(most, row + 9 - first_key) : most});
    }
    warp.weigh(params.scale_log2);
    warp.multiply_values(ring.template next<1>(params, key_block));
    ring.leave();
  }
  warp.store(shared, params.out + warp_row * params.out_stride + int64_t{head} * params.head_bytes,
             params.out_stride, params.rows - warp_row, params.head_bytes);
}

}  // namespace octet::cuda
