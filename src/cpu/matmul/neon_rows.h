// The store of both NEON matmul kernels: row-major sums [rows][12] to any output type. Everything
// has internal linkage, because the two files that include this are compiled for different CPUs.
#pragma once

#include <arm_neon.h>

#include "cpu/matmul/float_microkernel.h"

namespace octet::cpu {
namespace {

constexpr int kTileM = 8;
constexpr int kTileN = 12;

inline uint16x4_t to_bf16(float32x4_t sums) {
  const uint32x4_t bits = vreinterpretq_u32_f32(sums);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t rounded = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);
  const uint32x4_t number = vceqq_f32(sums, sums);
  return vbsl_u16(vmovn_u32(number), vshrn_n_u32(rounded, 16), vdup_n_u16(0x7fc0));
}

inline uint16x4_t to_f16(float32x4_t sums) {
  const uint32x4_t number = vceqq_f32(sums, sums);
  return vbsl_u16(vmovn_u32(number), vreinterpret_u16_f16(vcvt_f16_f32(sums)), vdup_n_u16(0x7e00));
}

template <class T>
void copy_elements(const T* from, int64_t count, T* to) {
  for (int64_t j = 0; j < count; ++j) to[j] = from[j];
}

void store(const OutTile& tile) {
  for (int64_t i = 0; i < tile.rows; ++i) {
    const float* sums = tile.sums + i * kTileN;
    const int64_t at = i * tile.row_stride;
    if (tile.type == MatmulOut::f32) {
      copy_elements(sums, tile.columns, static_cast<float*>(tile.data) + at);
      continue;
    }
    uint16_t narrow[kTileN];
    for (int j = 0; j < kTileN; j += 4) {
      const float32x4_t four = vld1q_f32(sums + j);
      vst1_u16(narrow + j, tile.type == MatmulOut::bf16 ? to_bf16(four) : to_f16(four));
    }
    copy_elements(narrow, tile.columns, static_cast<uint16_t*>(tile.data) + at);
  }
}

}  // namespace
}  // namespace octet::cpu
