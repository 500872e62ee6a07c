// AVX2 has no int8 dot product. vpmaddubsw multiplies unsigned by signed bytes and adds pairs with
// saturation to int16, which |b| * (a with the sign of b) never reaches: the largest pair is
// 2 * 128 * 127 = 32512. That needs a in [-127, 127], which the contract promises; b may be -128.
// Rejected: widening both sides to int16 for vpmaddwd (exact for all inputs, but 1.5x the
// instructions per product).
#include <immintrin.h>

#include "cpu/gemm/int8_microkernel.h"

namespace octet::cpu {
namespace {

// Loops over register arrays are unrolled by pragma: at -O2 gcc would keep the arrays in memory.

constexpr int kMr = 4;
constexpr int kNr = 16;
constexpr int kAGroup = 64;
constexpr int kBGroup = 4;

[[gnu::always_inline]] inline __m256i dot(__m256i c, __m256i a, __m256i b, __m256i b_magnitude) {
  const __m256i pairs = _mm256_maddubs_epi16(b_magnitude, _mm256_sign_epi8(a, b));
  return _mm256_add_epi32(c, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

void run(const int8_t* a, const int8_t* b, int64_t k, int32_t* acc, bool accumulate, const Ahead&) {
  __m256i c[kMr][2];
  auto* acc_vec = reinterpret_cast<__m256i*>(acc);
#pragma GCC unroll 16
  for (int i = 0; i < kMr; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < 2; ++j) {
      c[i][j] = accumulate ? _mm256_load_si256(acc_vec + i * 2 + j) : _mm256_setzero_si256();
    }
  }
  for (int64_t k0 = 0; k0 < k; k0 += kAGroup, a += kMr * kAGroup) {
    for (int p = 0; p < kAGroup; p += kBGroup, b += kNr * kBGroup) {
      const __m256i b0 = _mm256_load_si256(reinterpret_cast<const __m256i*>(b));
      const __m256i b1 = _mm256_load_si256(reinterpret_cast<const __m256i*>(b) + 1);
      const __m256i magnitude0 = _mm256_abs_epi8(b0);
      const __m256i magnitude1 = _mm256_abs_epi8(b1);
#pragma GCC unroll 16
      for (int i = 0; i < kMr; ++i) {
        int32_t four;
        __builtin_memcpy(&four, a + i * kAGroup + p, sizeof(four));
        const __m256i a_all = _mm256_set1_epi32(four);
        c[i][0] = dot(c[i][0], a_all, b0, magnitude0);
        c[i][1] = dot(c[i][1], a_all, b1, magnitude1);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kMr; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < 2; ++j) _mm256_store_si256(acc_vec + i * 2 + j, c[i][j]);
  }
}

// The four instructions of one product, on eight independent accumulators.
int64_t spin(int64_t iterations) {
  __m256i c[8];
#pragma GCC unroll 16
  for (auto& lane : c) lane = _mm256_setzero_si256();
  __m256i a = _mm256_set1_epi32(0x05fd0211);
  __m256i b = _mm256_set1_epi32(0x7f83fe01);
  const __m256i magnitude = _mm256_abs_epi8(b);
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 16
    for (auto& lane : c) {
      asm volatile("" : "+x"(a));
      lane = dot(lane, a, b, magnitude);
    }
  }
#pragma GCC unroll 16
  for (auto& lane : c) asm volatile("" : : "x"(lane));
  return iterations * 8 * 32 * 2;
}

}  // namespace

const Int8MicroKernel kMicroAvx2 = {
    .name = "avx2_4x16",
    .simd = Simd::avx2,
    .mr = kMr,
    .nr = kNr,
    .k_step = kAGroup,
    .a_group = kAGroup,
    .b_group = kBGroup,
    .k_block = 1024,
    .run = run,
    .spin = spin,
};

}  // namespace octet::cpu
