// A warp's registers and products in the attention kernels for mma.sync.
#pragma once

#include "cuda/attention/flash_tile.h"
#include "cuda/attention/online_softmax.cuh"
#include "cuda/attention/scores.cuh"
#include "cuda/ptx/ldmatrix.cuh"
#include "cuda/ptx/mma_bf16.cuh"
#include "cuda/ptx/mma_s8.cuh"
#include "cuda/ptx/registers.cuh"
#include "cuda/rows/row_ptx.cuh"

namespace octet::cuda {

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

  // If they stay in registers: called once, when they are in shared memory.
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

  // Masks the keys that a row does not see: those from ends[h] on, for rows g and g + 8.
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

  // Stores the result in `out`, where `left` rows of it exist, through this warp's own part of
  // `shared`, so that whole lines are written at once.
  __device__ void store(std::byte* shared, std::byte* out, int64_t stride, int left,
                        int head_bytes) {
    const unsigned thread = ptx::thread_read_anew();
    const int lane = static_cast<int>(thread % 32), warp = static_cast<int>(thread / 32);
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

}  // namespace octet::cuda
