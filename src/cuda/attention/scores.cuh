// Scores of a block of keys in a lane's registers: as the tensor cores leave them, then as numbers.
// scores[j] holds, of the eight columns 8 j and following, those numbered 2 t and 2 t + 1,
// t = lane % 4, of two rows: elements 0, 1 and 2, 3.
#pragma once

#include <cfloat>
#include <cstdint>
#include <type_traits>

#include "cuda/ptx/shared.cuh"

namespace octet::cuda {

template <int kBlocks>
struct FloatScores {
  float scores[kBlocks][4];
  __device__ auto& raw() { return scores; }
  __device__ auto& values() { return scores; }
  __device__ __forceinline__ void begin() {
#pragma unroll
    for (auto& block : scores) block[0] = block[1] = block[2] = block[3] = 0;
  }
};

// The tensor cores add to a number whose bits, with the sum in them, are those of the float
// kOffset + sum: sums of up to 256 products are below 2^22 in magnitude. That takes one instruction
// less than converting them, and tells the compiler that old sums are not needed.
template <int kBlocks>
struct Int8Scores {
  static constexpr float kOffset = 0x1.8p23f;
  static constexpr bool kAddsToOffset = true;
  int32_t sums[kBlocks][4];
  float scores[kBlocks][4];
  __device__ auto& raw() { return sums; }
  __device__ auto& values() { return scores; }
  __device__ __forceinline__ void begin() {
#pragma unroll
    for (auto& block : sums) {
      block[0] = block[1] = block[2] = block[3] = __float_as_int(kOffset);
    }
  }
  // `scales`: address of the keys' scales. The offset times a scale is rounded, by less than one
  // unit of the sums.
  __device__ __forceinline__ void scale(uint32_t scales) {
    const uint32_t from = scales + threadIdx.x % 4 * 8;
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) {
      const float2 scale = ptx::shared_load_pair(from + j * 32);
      const float offset[2] = {__fmul_rn(-kOffset, scale.x), __fmul_rn(-kOffset, scale.y)};
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        scores[j][c] =
            __fmaf_rn(__int_as_float(sums[j][c]), c % 2 == 0 ? scale.x : scale.y, offset[c % 2]);
      }
    }
  }
};

// The same by conversion: twice the work after the product, but none before it, for kernels whose
// tensor cores wait for it.
template <int kBlocks>
struct ConvertedScores {
  static constexpr bool kAddsToOffset = false;
  int32_t sums[kBlocks][4];
  float scores[kBlocks][4];
  __device__ auto& raw() { return sums; }
  __device__ auto& values() { return scores; }
  __device__ void begin() {}
  __device__ __forceinline__ void scale(uint32_t scales) {
    const uint32_t from = scales + threadIdx.x % 4 * 8;
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) {
      const float2 scale = ptx::shared_load_pair(from + j * 32);
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        scores[j][c] = __fmul_rn(__int2float_rn(sums[j][c]), c % 2 == 0 ? scale.x : scale.y);
      }
    }
  }
};

template <bool kInt8, int kBlocks>
using ScoresOf = std::conditional_t<kInt8, Int8Scores<kBlocks>, FloatScores<kBlocks>>;

// The factor of the scores of a row of codes, which are already scaled by their keys. A row of
// zeros has scale 0, which would turn the -infinity of a mask into NaN; a NaN stays.
__device__ __forceinline__ float row_scale_log2(float q_scale, float scale_log2) {
  const float scale = __fmul_rn(q_scale, scale_log2);
  return scale == 0 ? FLT_MIN : scale;
}

}  // namespace octet::cuda
