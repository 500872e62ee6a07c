// The online softmax whose weights are 8-bit codes: see online_softmax.cuh for how scores lie.
#pragma once

#include <cmath>
#include <cstdint>

#include "cuda/attention/online_softmax.cuh"
#include "cuda/rows/row_scale.cuh"

namespace octet::cuda {

// The larger one, or NaN if either is.
__device__ __forceinline__ float max_or_nan(float a, float b) {
  float largest;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(largest) : "f"(a), "f"(b));
  return largest;
}

// Codes of a row are relative to the largest score of their block of keys, whose code is 255: each
// block uses their full range, even if an earlier one has the row's largest score.
//
// Sums of codes of weights times codes of values, which are at least 0 and below 2^23, are
// reinterpreted as floats: these are that many times 2^-149, subnormal numbers, which multiply no
// slower. So adding them up takes one instruction and no conversion. Accumulators are kept kScale
// times their size, since the factor that makes up for the 2^-149 would not be a float otherwise;
// that leaves room for values from 2^-50 to 2^45.
struct CodedSoftmax : OnlineSoftmax {
  // The excess in the sums, since codes of values have 128 added to them: this lane's share, in
  // units of 128.
  float excess[2] = {0, 0};

  // Scores become codes in wgmma's layout. The sums so far have to be multiplied by `rescale`, and
  // the sums of this block, times `factor`, added. A NaN among the scores has no code: it counts as
  // the largest, and makes the row's factor and total NaN.
  template <int kBlocks>
  __device__ __forceinline__ void update(const float (&scores)[kBlocks][4],
                                         const float (&scale_log2)[2], float value_scale,
                                         float (&rescale)[2], float (&factor)[2],
                                         uint32_t (&codes)[kBlocks / 4][4]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float largest = scores[0][2 * h], largest_of_odd = scores[0][2 * h + 1];
#pragma unroll
      for (int j = 1; j < kBlocks; ++j) {
        largest = max_or_nan(largest, scores[j][2 * h]);
        largest_of_odd = max_or_nan(largest_of_odd, scores[j][2 * h + 1]);
      }
      largest = max_or_nan(largest, largest_of_odd);
      largest = max_or_nan(largest, __shfl_xor_sync(~0u, largest, 1));
      largest = max_or_nan(largest, __shfl_xor_sync(~0u, largest, 2));
      // A code is 2^(score * scale_log2 + above), rounded. Both roundings here are in the direction
      // that keeps the exponent of the largest at or below log2(255), however large the scores: 256
      // would wrap to 0.
      const bool sees = largest != -INFINITY;
      const float top = __fmul_ru(largest, scale_log2[h]);
      const float above = sees ? __fadd_rd(kLog2Of255, -top) : 0.0f;
      const float new_shift = top > __fadd_rn(shift[h], kMostAhead) ? top : shift[h];
      const float finite_shift = new_shift == -INFINITY ? 0.0f : new_shift;
      rescale[h] = ptx::exp2_approx(__fsub_rn(shift[h], finite_shift));
      shift[h] = new_shift;
      uint32_t sum = 0;
#pragma unroll
      for (int j = 0; j < kBlocks; j += 2) {
        uint32_t rounded[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float score = scores[j + i / 2][2 * h + i % 2];
          rounded[i] = rounded_byte(ptx::exp2_approx(__fmaf_rn(score, scale_log2[h], above)));
        }
        const uint32_t word = __byte_perm(__byte_perm(rounded[0], rounded[1], 0x0040),
                                          __byte_perm(rounded[2], rounded[3], 0x0040), 0x5410);
        codes[j / 4][j / 2 % 2 * 2 + h] = word;
        sum = __dp4a(word, 0x01010101u, sum);
      }
      // What one unit of the codes is worth, relative to the shift.
      const float unit = sees ? ptx::exp2_approx(__fsub_rn(-above, finite_shift)) : 0.0f;
      const float weight = __fmul_rn(__uint2float_rn(sum), unit);
      total[h] = __fmaf_rn(total[h], rescale[h], weight);
      excess[h] = __fmaf_rn(excess[h], rescale[h], __fmul_rn(weight, value_scale));
      factor[h] = __fmul_rn(__fmul_rn(unit, kUp), value_scale);
    }
  }

  // After the last block.
  template <int kBlocks>
  __device__ __forceinline__ void take_excess(float (&acc)[kBlocks][4]) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float all = excess[h];
      all = __fadd_rn(all, __shfl_xor_sync(~0u, all, 1));
      all = __fadd_rn(all, __shfl_xor_sync(~0u, all, 2));
      all = __fmul_rn(all, 128 * kScale);
#pragma unroll
      for (int j = 0; j < kBlocks; ++j) {
        acc[j][2 * h] = __fsub_rn(acc[j][2 * h], all);
        acc[j][2 * h + 1] = __fsub_rn(acc[j][2 * h + 1], all);
      }
    }
  }

  __device__ __forceinline__ float inverse_total(int h) const {
    return __fmul_rn(OnlineSoftmax::inverse_total(h), 1 / kScale);
  }

 private:
  static constexpr float kLog2Of255 = 7.99435344f;
  static constexpr float kScale = 0x1p-60f;
  static constexpr float kUp = 0x1p89f;  // 2^149 kScale
};

}  // namespace octet::cuda
