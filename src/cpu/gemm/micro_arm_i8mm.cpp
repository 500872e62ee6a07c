// NEON i8mm: smmla multiplies 2 x 8 bytes by the transpose of 2 x 8 bytes into a 2 x 2 block of
// int32. 8 x 12: 24 blocks + 4 pairs of rows + 1 pair of columns at a time fit the 32 registers.
#include <arm_neon.h>

#include "cpu/gemm/int8_microkernel.h"

namespace octet::cpu {
namespace {

// Loops over register arrays are unrolled by pragma: at -O2 gcc would keep the arrays in memory.

constexpr int kMr = 8;
constexpr int kNr = 12;
constexpr int kStep = 8;
constexpr int kRowPairs = kMr / 2;
constexpr int kColumnPairs = kNr / 2;

void run(const int8_t* a, const int8_t* b, int64_t k, int32_t* acc, bool accumulate, const Ahead&) {
  // A block holds (row 0: column 0, 1; row 1: column 0, 1).
  int32x4_t c[kRowPairs][kColumnPairs];
#pragma GCC unroll 16
  for (int i = 0; i < kRowPairs; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kColumnPairs; ++j) {
      const int32_t* at = acc + 2 * i * kNr + 2 * j;
      c[i][j] = accumulate ? vcombine_s32(vld1_s32(at), vld1_s32(at + kNr)) : vdupq_n_s32(0);
    }
  }
  for (int64_t k0 = 0; k0 < k; k0 += kStep, a += kMr * kStep, b += kNr * kStep) {
    int8x16_t rows[kRowPairs];
#pragma GCC unroll 16
    for (int i = 0; i < kRowPairs; ++i) rows[i] = vld1q_s8(a + i * 16);
#pragma GCC unroll 16
    for (int j = 0; j < kColumnPairs; ++j) {
      const int8x16_t columns = vld1q_s8(b + j * 16);
#pragma GCC unroll 16
      for (int i = 0; i < kRowPairs; ++i) c[i][j] = vmmlaq_s32(c[i][j], rows[i], columns);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRowPairs; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kColumnPairs; ++j) {
      int32_t* at = acc + 2 * i * kNr + 2 * j;
      vst1_s32(at, vget_low_s32(c[i][j]));
      vst1_s32(at + kNr, vget_high_s32(c[i][j]));
    }
  }
}

int64_t spin(int64_t iterations) {
  int32x4_t c[16];
#pragma GCC unroll 16
  for (auto& lane : c) lane = vdupq_n_s32(0);
  const int8x16_t a = vdupq_n_s8(5);
  const int8x16_t b = vdupq_n_s8(-7);
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 16
    for (auto& lane : c) {
      asm volatile("smmla %0.4s, %1.16b, %2.16b" : "+w"(lane) : "w"(a), "w"(b));
    }
  }
  return iterations * 16 * 32 * 2;
}

}  // namespace

const Int8MicroKernel kMicroI8mm = {
    .name = "neon_i8mm_8x12",
    .simd = Simd::neon,
    .mr = kMr,
    .nr = kNr,
    .k_step = kStep,
    .a_group = kStep,
    .b_group = kStep,
    .k_block = 1024,
    .run = run,
    .spin = spin,
};

}  // namespace octet::cpu
