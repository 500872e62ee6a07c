// AVX-512 helpers of the matmul kernels: transposing 16 x 16 blocks of 32-bit elements, and writing
// 16 f32 as any output type. For files compiled with AVX-512 alone; everything has internal
// linkage, so that no copy of it can end up in code for older CPUs.
#pragma once

#include <immintrin.h>

#include "cpu/matmul/float_microkernel.h"
#include "cpu/simd/vec_avx512.h"

namespace octet::cpu {
namespace {

// Column j of the block becomes row j. Four rounds of exchanges between rows 1, 2, 4 and 8 apart.
inline void transpose_16x16(__m512i (&r)[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  // Now r[4g + c] holds, in 128-bit lane l, rows 4g..4g+3 of column 4l + c.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    t[c] = _mm512_shuffle_i32x4(r[c], r[c + 4], 0x88);
    t[c + 4] = _mm512_shuffle_i32x4(r[c], r[c + 4], 0xdd);
    t[c + 8] = _mm512_shuffle_i32x4(r[c + 8], r[c + 12], 0x88);
    t[c + 12] = _mm512_shuffle_i32x4(r[c + 8], r[c + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    r[c] = _mm512_shuffle_i32x4(t[c], t[c + 8], 0x88);
    r[c + 8] = _mm512_shuffle_i32x4(t[c], t[c + 8], 0xdd);
    r[c + 4] = _mm512_shuffle_i32x4(t[c + 4], t[c + 12], 0x88);
    r[c + 12] = _mm512_shuffle_i32x4(t[c + 4], t[c + 12], 0xdd);
  }
}

// The first `count` of 16 lanes; any count of 16 or more means all, zero or less none.
inline __mmask16 first_lanes(int64_t count) {
  if (count >= 16) return 0xffff;
  return count <= 0 ? __mmask16{0} : static_cast<__mmask16>((1u << count) - 1);
}

// 16 of a tile's accumulators with their bias, if there is one; `column` is their first one's.
inline __m512 add_bias(__m512 acc, const OutTile& tile, int column) {
  if (tile.bias == nullptr) return acc;
  return _mm512_add_ps(acc, _mm512_loadu_ps(tile.bias + column));
}

// Writes `lanes` of 16 accumulators from element `at` on, rounded once.
inline void store_16(__m512 acc, DType type, void* to, int64_t at, __mmask16 lanes) {
  switch (type) {
    case DType::bf16: return VecAvx512::store(static_cast<bf16_t*>(to) + at, acc, lanes);
    case DType::f16: return VecAvx512::store(static_cast<f16_t*>(to) + at, acc, lanes);
    default: return VecAvx512::store(static_cast<float*>(to) + at, acc, lanes);
  }
}

}  // namespace
}  // namespace octet::cpu
