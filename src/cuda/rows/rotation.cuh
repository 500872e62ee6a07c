// The regular Hadamard rotation, in registers and shuffles.
//
// Eight lanes (a team, lanes 8i to 8i+7) hold 256 consecutive columns, 32 each. With column bits
// b7...b0, a digit of the rotation is a pair (b1 b0), (b3 b2), (b5 b4), (b7 b6):
//
//   lane in the team  = b7 b5 b3        value in the lane = b6 b4 b2 b1 b0
//
// so the lowest digit is inside a lane, and of the others the low bit is inside and the high bit is
// across. That split is the cheap one: of x0, x1 | x2, x3 one lane holds the first pair and its
// neighbour the second; each needs its neighbour's difference, and nothing else:
//
//   y0 = (x0 + x1) + (x2 - x3)     y2 = (x2 + x3) + (x0 - x1)
//   y1 = (x0 + x1) - (x2 - x3)     y3 = (x2 + x3) - (x0 - x1)
//
// One shuffle per two values and digit, no selects, the same code in both lanes. (Both bits across
// lanes, as for the digit of 1024, takes two shuffles per value.) Eight consecutive columns per
// lane are one 16-byte load of 16-bit values, and two lanes cover a 32-byte sector.
//
// Sums are those of ref/quantize.cpp in its order. The factor is not applied here.
#pragma once

#include <cstdint>

namespace octet::cuda {

inline constexpr uint32_t kFullWarp = 0xffffffffu;

// Column within the 256 of value 0 of chunk 0; chunk c = (b6 b4) is rotation_chunk_column(c) on.
__device__ inline int rotation_lane_column(int lane) {
  return (lane & 1) * 8 + (lane & 2) * 16 + (lane & 4) * 32;
}
__device__ constexpr int rotation_chunk_column(int chunk) {
  return (chunk & 1) * 16 + (chunk & 2) * 32;
}

__device__ inline void butterfly_in_lane(float* x) {
  const float s = __fadd_rn(x[0], x[1]);
  const float d = __fsub_rn(x[0], x[1]);
  const float t = __fadd_rn(x[2], x[3]);
  const float u = __fsub_rn(x[2], x[3]);
  x[0] = __fadd_rn(s, u);
  x[1] = __fsub_rn(s, u);
  x[2] = __fadd_rn(t, d);
  x[3] = __fsub_rn(t, d);
}

__device__ inline void butterfly_split(float& low, float& high, int lane_mask) {
  const float sum = __fadd_rn(low, high);
  const float difference = __fsub_rn(low, high);
  const float other = __shfl_xor_sync(kFullWarp, difference, lane_mask);
  low = __fadd_rn(sum, other);
  high = __fsub_rn(sum, other);
}

// The digit whose two bits are lane bits 4 and 3 of the warp. First s, d, t, u in teams 0 to 3,
// then y0, y3, y2, y1: teams 1 and 3 hold each other's result, which the caller's store addresses
// put right for free. `sign` is 1 in even teams and -1 in odd ones: both steps are "received plus
// or minus own", one exactly rounded operation each.
__device__ inline void butterfly_across(float& x, float sign) {
  x = __fmaf_rn(x, sign, __shfl_xor_sync(kFullWarp, x, 8));
  x = __fmaf_rn(x, sign, __shfl_xor_sync(kFullWarp, x, 24));
}
__device__ inline int team_after_across(int team) { return team ^ ((team & 1) << 1); }

// v[8 * chunk + e]; `digits` is 1 to 5 for groups of 4, 16, 64, 256, 1024, the same in all lanes.
__device__ inline void rotate_team(float (&v)[32], int digits) {
#pragma unroll
  for (int i = 0; i < 32; i += 4) butterfly_in_lane(v + i);
  if (digits == 1) return;
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int low = (i / 4) * 8 + i % 4;
    butterfly_split(v[low], v[low + 4], 1);
  }
  if (digits == 2) return;
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int low = (i / 8) * 16 + i % 8;
    butterfly_split(v[low], v[low + 8], 2);
  }
  if (digits == 3) return;
#pragma unroll
  for (int i = 0; i < 16; ++i) butterfly_split(v[i], v[i + 16], 4);
  if (digits == 4) return;
  const float sign = (threadIdx.x & 8) == 0 ? 1.0f : -1.0f;
#pragma unroll
  for (int i = 0; i < 32; ++i) butterfly_across(v[i], sign);
}

// Quantized words[2 * chunk + half] of rotation_lane_column order -> two runs of 16 columns:
// words[0..3] at rotation_store_column(lane), words[4..7] 64 columns on. Neighbours swap b3 for b4,
// so that stores are 16 bytes wide and two lanes fill a sector; it moves bytes, not floats.
__device__ inline void merge_runs(uint32_t (&words)[8], int lane) {
  const bool odd = (lane & 1) != 0;
#pragma unroll
  for (int i = 0; i < 8; i += 4) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint32_t& even_chunk = words[i + half];
      uint32_t& odd_chunk = words[i + 2 + half];
      const uint32_t received = __shfl_xor_sync(kFullWarp, odd ? even_chunk : odd_chunk, 1);
      // The even lane keeps its even chunk and appends; the odd lane puts what came in front.
      if (odd) {
        even_chunk = received;
      } else {
        odd_chunk = received;
      }
    }
  }
}
__device__ inline int rotation_store_column(int lane) {
  return (lane & 1) * 16 + (lane & 2) * 16 + (lane & 4) * 32;
}

}  // namespace octet::cuda
