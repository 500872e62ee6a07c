// The softmax of attention, a block of keys at a time, on the scores that the tensor cores leave in
// a lane's registers: scores[j] holds, of the eight columns 8 j and following, those numbered 2 t
// and 2 t + 1, t = lane % 4, of two rows: elements 0, 1 and 2, 3.
#pragma once

#include <cmath>

#include "cuda/ptx/exp2.cuh"

namespace octet::cuda {

// Masks the keys that a row does not see: those from ends[h] on for row h, counted from this
// block's first.
template <int kBlocks>
__device__ __forceinline__ void mask_scores(float (&scores)[kBlocks][4], const int (&ends)[2]) {
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      if (8 * j + column + c % 2 >= ends[c / 2]) scores[j][c] = -INFINITY;
    }
  }
}

// Of a lane's two rows.
struct OnlineSoftmax {
  // Weights are relative to this: about the largest score so far, times its scale. It follows a new
  // maximum only if that exceeds it by kMostAhead, because all accumulators have to follow: weights
  // are then at most 2^kMostAhead, which costs no precision.
  static constexpr float kMostAhead = 8;
  float shift[2] = {-INFINITY, -INFINITY};
  float total[2] = {0, 0};  // this lane's share of the sum of weights

  // Scores become weights 2^(score * scale_log2 - shift); sums made under earlier shifts have to be
  // multiplied by `rescale`. NaN is never the maximum, but makes its weight, and with it the sum of
  // weights, NaN.
  template <int kBlocks>
  __device__ __forceinline__ void update(float (&scores)[kBlocks][4], const float (&scale_log2)[2],
                                         float (&rescale)[2]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      // Two chains of each: few warps share a scheduler, and a single chain would wait for itself.
      float largest = scores[0][2 * h], largest_of_odd = scores[0][2 * h + 1];
#pragma unroll
      for (int j = 1; j < kBlocks; ++j) {
        largest = fmaxf(largest, scores[j][2 * h]);
        largest_of_odd = fmaxf(largest_of_odd, scores[j][2 * h + 1]);
      }
      largest = fmaxf(largest, largest_of_odd);
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
      // Rounded once, here: accumulators and new weights must be relative to the same shift.
      const float score = __fmul_rn(largest, scale_log2[h]);
      const float new_shift = score > __fadd_rn(shift[h], kMostAhead) ? score : shift[h];
      // Nothing but -infinity so far: weights 0, which a later score can still outweigh.
      const float finite_shift = new_shift == -INFINITY ? 0.0f : new_shift;
      rescale[h] = ptx::exp2_approx(__fsub_rn(shift[h], finite_shift));
      shift[h] = new_shift;
      float sums[2] = {0, 0};
#pragma unroll
      for (int j = 0; j < kBlocks; ++j) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          float& weight = scores[j][2 * h + c];
          weight = ptx::exp2_approx(__fmaf_rn(weight, scale_log2[h], -finite_shift));
          sums[c] = __fadd_rn(sums[c], weight);
        }
      }
      total[h] = __fmaf_rn(total[h], rescale[h], __fadd_rn(sums[0], sums[1]));
    }
  }

  // The final factor of the weighted sums; the same in the four lanes of a row.
  __device__ __forceinline__ float inverse_total(int h) const {
    float sum = total[h];
    sum = __fadd_rn(sum, __shfl_xor_sync(~0u, sum, 1));
    sum = __fadd_rn(sum, __shfl_xor_sync(~0u, sum, 2));
    return __frcp_rn(sum);
  }
};

// Nearly all blocks of keys leave the shift as it is, and nothing has to be multiplied.
template <int kBlocks>
__device__ __forceinline__ void rescale_accumulators(float (&acc)[kBlocks][4],
                                                     const float (&rescale)[2]) {
  if (!__any_sync(~0u, rescale[0] != 1.0f || rescale[1] != 1.0f)) return;
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
#pragma unroll
    for (int c = 0; c < 4; ++c) acc[j][c] = __fmul_rn(acc[j][c], rescale[c / 2]);
  }
}

}  // namespace octet::cuda
