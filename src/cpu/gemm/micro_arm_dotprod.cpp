// NEON dot product: sdot adds four products of signed bytes to an int32, the activations taken from
// one 32-bit lane. A row of a holds 16 bytes = 4 lanes, so 8 + 8 loads serve 64 multiplications.
#include <arm_neon.h>

#include "cpu/gemm/int8_microkernel.h"

namespace octet::cpu {
namespace {

// Loops over register arrays are unrolled by pragma: at -O2 gcc would keep the arrays in memory.

constexpr int kMr = 8;
constexpr int kNr = 8;
constexpr int kStep = 16;
constexpr int kBGroup = 4;

template <int kLane>
[[gnu::always_inline]] inline void multiply(int32x4_t (&c)[kMr][2], const int8x16_t (&rows)[kMr],
                                            const int8_t* b) {
  const int8x16_t b0 = vld1q_s8(b);
  const int8x16_t b1 = vld1q_s8(b + 16);
#pragma GCC unroll 16
  for (int i = 0; i < kMr; ++i) {
    c[i][0] = vdotq_laneq_s32(c[i][0], b0, rows[i], kLane);
    c[i][1] = vdotq_laneq_s32(c[i][1], b1, rows[i], kLane);
  }
}

void run(const int8_t* a, const int8_t* b, int64_t k, int32_t* acc, bool accumulate, const Ahead&) {
  int32x4_t c[kMr][2];
#pragma GCC unroll 16
  for (int i = 0; i < kMr; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < 2; ++j) {
      c[i][j] = accumulate ? vld1q_s32(acc + i * kNr + j * 4) : vdupq_n_s32(0);
    }
  }
  for (int64_t k0 = 0; k0 < k; k0 += kStep, a += kMr * kStep, b += kNr * kStep) {
    int8x16_t rows[kMr];
#pragma GCC unroll 16
    for (int i = 0; i < kMr; ++i) rows[i] = vld1q_s8(a + i * kStep);
    multiply<0>(c, rows, b);
    multiply<1>(c, rows, b + kNr * kBGroup);
    multiply<2>(c, rows, b + 2 * kNr * kBGroup);
    multiply<3>(c, rows, b + 3 * kNr * kBGroup);
  }
#pragma GCC unroll 16
  for (int i = 0; i < kMr; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < 2; ++j) vst1q_s32(acc + i * kNr + j * 4, c[i][j]);
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
      asm volatile("sdot %0.4s, %1.16b, %2.16b" : "+w"(lane) : "w"(a), "w"(b));
    }
  }
  return iterations * 16 * 16 * 2;
}

}  // namespace

const Int8MicroKernel kMicroDotprod = {
    .name = "neon_dotprod_8x8",
    .simd = Simd::neon,
    .mr = kMr,
    .nr = kNr,
    .k_step = kStep,
    .a_group = kStep,
    .b_group = kBGroup,
    .k_block = 1024,
    .run = run,
    .spin = spin,
};

}  // namespace octet::cpu
