// AVX-512 VNNI: vpdpbusd adds four products of unsigned and signed bytes to an int32, without
// saturation. The activations become unsigned by adding 128 while they are packed.
#include <immintrin.h>

#include "cpu/gemm/int8_microkernel.h"

namespace octet::cpu {
namespace {

// Loops over register arrays are unrolled by pragma: at -O2 gcc would keep the arrays in memory.

// 8 x 48: 24 accumulators + 3 vectors of weights + 1 broadcast fill the 32 registers; 11 loads
// serve 24 multiplications.
constexpr int kMr = 8;
constexpr int kNr = 48;
constexpr int kVectors = kNr / 16;
constexpr int kAGroup = 64;
constexpr int kBGroup = 4;

void run(const int8_t* a, const int8_t* b, int64_t k, int32_t* acc, bool accumulate, const Ahead&) {
  __m512i c[kMr][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kMr; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kVectors; ++j) {
      c[i][j] = accumulate ? _mm512_load_si512(acc + i * kNr + j * 16) : _mm512_setzero_si512();
    }
  }
  for (int64_t k0 = 0; k0 < k; k0 += kAGroup, a += kMr * kAGroup) {
    for (int p = 0; p < kAGroup; p += kBGroup, b += kNr * kBGroup) {
      __m512i weights[kVectors];
#pragma GCC unroll 16
      for (int j = 0; j < kVectors; ++j) weights[j] = _mm512_load_si512(b + j * 64);
#pragma GCC unroll 16
      for (int i = 0; i < kMr; ++i) {
        int32_t four;
        __builtin_memcpy(&four, a + i * kAGroup + p, sizeof(four));
        const __m512i a_all = _mm512_set1_epi32(four);
#pragma GCC unroll 16
        for (int j = 0; j < kVectors; ++j) {
          c[i][j] = _mm512_dpbusd_epi32(c[i][j], a_all, weights[j]);
        }
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kMr; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kVectors; ++j) _mm512_store_si512(acc + i * kNr + j * 16, c[i][j]);
  }
}

int64_t spin(int64_t iterations) {
  __m512i c[16];
#pragma GCC unroll 16
  for (auto& lane : c) lane = _mm512_setzero_si512();
  __m512i a = _mm512_set1_epi32(0x05fd0211);
  __m512i b = _mm512_set1_epi32(0x7f83fe01);
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 16
    for (auto& lane : c) {
      asm volatile("vpdpbusd %2, %1, %0" : "+v"(lane) : "v"(a), "v"(b));
    }
  }
  return iterations * 16 * 64 * 2;
}

}  // namespace

const Int8MicroKernel kMicroVnni = {
    .name = "avx512_vnni_8x48",
    .simd = Simd::avx512,
    .mr = kMr,
    .nr = kNr,
    .k_step = kAGroup,
    .a_group = kAGroup,
    .b_group = kBGroup,
    .a_offset = 128,
    .k_block = 576,
    .run = run,
    .spin = spin,
};

}  // namespace octet::cpu
