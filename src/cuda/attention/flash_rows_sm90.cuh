// The part of a warpgroup in Hopper's attention kernels that does not depend on the type of values.
#pragma once

#include "cuda/attention/flash_fetch_sm90.cuh"
#include "cuda/attention/flash_merge_sm90.cuh"
#include "cuda/attention/online_softmax.cuh"
#include "cuda/attention/scores.cuh"
#include "cuda/ptx/named_barrier.cuh"
#include "cuda/ptx/registers.cuh"
#include "cuda/ptx/shared.cuh"
#include "cuda/ptx/wgmma_bf16.cuh"
#include "cuda/ptx/wgmma_s8.cuh"
#include "cuda/rows/row_ptx.cuh"

namespace octet::cuda {

// One warpgroup's 64 rows. A lane, g = lane / 4 and t = lane % 4, has of eight columns those
// numbered 2 t and 2 t + 1, of rows g (elements 0, 1) and g + 8 (2, 3) of its warp's 16.
// `Softmax`: OnlineSoftmax or a class derived from it.
template <HopperFlashTile T, class Softmax>
class FlashRows {
 public:
  static constexpr int kScoreBlocks = T.keys / 8, kValueBlocks = T.head_dim / 8;

  __device__ FlashRows(const HopperFlashParams& params, uint32_t shared, int group)
      : params_(params), shared_(shared), group_(group), queries_(shared) {
    // The first warpgroup has the first turn; from then on they pass it on.
    if (T.alternates && group + 1 == T.groups) ptx::named_arrive(turn_barrier(0), 256);
  }

  // False if another worker has the rest.
  __device__ bool merge(const Work& work, uint32_t* arrived) {
    const int rank = T.cluster == 1 ? 0 : static_cast<int>(ptx::cluster_rank());
    const FlashMerge<T.groups * T.cluster, T.cluster, kValueBlocks> merge{
        params_, rank * T.groups + group_, arrived, 1 + group_};
    return merge.run(work, softmax_, acc_);
  }

  // The four lanes of a row exchange their words, so that each stores 16 bytes: 64 in a row.
  __device__ __forceinline__ void store(int head, int first_row) {
    const unsigned thread = ptx::thread_read_anew();
    const int lane = static_cast<int>(thread % 32), t = lane % 4;
    const int warp_row = first_row + group_ * 64 + static_cast<int>(thread / 32 % 4) * 16;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = warp_row + lane / 4 + 8 * h;
      const float inverse = softmax_.inverse_total(h);
      std::byte* out = params_.out + row * params_.out_stride + (head * T.head_dim + 8 * t) * 2;
#pragma unroll
      for (int j = 0; j < kValueBlocks; j += 4) {
        uint32_t w[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          w[i] = pack_bf16(__fmul_rn(acc_[j + i][2 * h], inverse),
                           __fmul_rn(acc_[j + i][2 * h + 1], inverse));
        }
        transpose_among_four(w, t);
        if (row < params_.rows) store_vector(out + j * 16, make_uint4(w[0], w[1], w[2], w[3]));
      }
    }
  }

 protected:
  using Scores = std::conditional_t<T.int8_values, ConvertedScores<kScoreBlocks>,
                                    ScoresOf<T.int8, kScoreBlocks>>;

  // Before the first block of keys.
  __device__ __forceinline__ void clear() {
    softmax_ = {};
#pragma unroll
    for (auto& block : acc_) block[0] = block[1] = block[2] = block[3] = 0;
  }

  // The factors of the scores of this lane's rows.
  __device__ __forceinline__ void load_scales(int head, int first_row,
                                              float (&scale_log2)[2]) const {
    const int warp_row = first_row + group_ * 64 + static_cast<int>(threadIdx.x / 32 % 4) * 16;
    scale_log2[0] = scale_log2[1] = params_.scale_log2;
    if constexpr (T.int8) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = warp_row + static_cast<int>(threadIdx.x % 32 / 4) + 8 * h;
        const float q_scale =
            row < params_.rows ? params_.q_scale[head * params_.q_scale_stride + row] : 0;
        scale_log2[h] = row_scale_log2(q_scale, params_.scale_log2);
      }
    }
  }

  // Q K^T of a block of keys.
  __device__ __forceinline__ void issue_scores(const KeyRing<T>& keys, Scores& scores) const {
    constexpr int kSteps = T.score_boxes() * 4;  // of 32 bytes
    const uint32_t q = ptx::wgmma_operand(shared_ + group_ * 64 * T.kRowBytes);
    const uint32_t k = ptx::wgmma_operand(keys.stage());
    if constexpr (T.int8) scores.begin();
    keys.wait();
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int box = step / 4, byte = step % 4 * 32;
      const uint32_t q_step = q + (box * T.rows() * T.kRowBytes + byte) / 16;
      const uint32_t k_step = k + (box * T.keys * T.kRowBytes + byte) / 16;
      if constexpr (T.int8) {
        ptx::wgmma_64xNx32(scores.sums, q_step, k_step, Scores::kAddsToOffset || step > 0);
      } else {
        ptx::wgmma_64xNx16(scores.scores, q_step, k_step, step > 0);
      }
    }
    ptx::wgmma_commit();
  }

  // Waits for the scores, converts them to numbers, and releases the keys.
  __device__ __forceinline__ void take_scores(const KeyRing<T>& keys, Scores& scores) const {
    ptx::wgmma_pin(scores.raw());
    if constexpr (T.int8) {
      scores.scale(shared_ + T.scale_place() + keys.slot * T.scale_bytes());
      __syncwarp();  // all lanes have their scales
    }
    KeyRing<T>::release(keys.empty());
  }

  // The keys that every row of this thread's warp sees.
  __device__ __forceinline__ int fewest_keys(int first_row, unsigned thread) const {
    const int warp_row = first_row + group_ * 64 + static_cast<int>(thread / 32 % 4) * 16;
    return params_.causal ? min(params_.keys, warp_row + 1) : params_.keys;
  }

  // Masks the keys from `first_key` on that a row does not see.
  __device__ __forceinline__ void mask(float (&scores)[kScoreBlocks][4], int first_key,
                                       int first_row) const {
    const auto thread = static_cast<int>(ptx::thread_read_anew());
    const int row = first_row + group_ * 64 + thread / 32 % 4 * 16 + thread % 32 / 4;
    const int most = params_.keys - first_key;
    const int ends[2] = {params_.causal ? min(most, row + 1 - first_key) : most,
                         params_.causal ? min(most, row + 9 - first_key) : most};
    mask_scores(scores, ends);
  }

  __device__ void wait_turn() const { ptx::named_sync(turn_barrier(group_), 256); }
  __device__ void pass_turn() const {
    ptx::named_arrive(turn_barrier(group_ + 1 == T.groups ? 0 : group_ + 1), 256);
  }

  const HopperFlashParams& params_;
  uint32_t shared_;
  int group_;
  QueryRing<T> queries_;
  uint32_t count_ = 0;  // blocks of keys before this work
  Softmax softmax_;
  float acc_[kValueBlocks][4];

 private:
  // w[i] of lane t of four becomes w[t] of lane i.
  __device__ __forceinline__ static void transpose_among_four(uint32_t (&w)[4], int t) {
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const uint32_t got = __shfl_xor_sync(~0u, t & 1 ? w[i] : w[i + 1], 1);
      (t & 1 ? w[i] : w[i + 1]) = got;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint32_t got = __shfl_xor_sync(~0u, t & 2 ? w[i] : w[i + 2], 2);
      (t & 2 ? w[i] : w[i + 2]) = got;
    }
  }

  __device__ static int turn_barrier(int group) { return 1 + T.groups + group; }
};

}  // namespace octet::cuda
