// Sixteen floats in a zmm register. See vec_scalar.h for what a Vec is.
#pragma once

#include <immintrin.h>

#include "tensor/dtype.h"

namespace {

struct VecAvx512 {
  static constexpr int kWidth = 16;
  using F = __m512;
  using U = __m512i;

  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static F load(const octet::bf16_t* p) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static F load(const octet::f16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static F load(const int8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
  }
  static F load(const int32_t* p) { return _mm512_cvtepi32_ps(_mm512_loadu_si512(p)); }

  static void store(float* p, F x) { _mm512_storeu_ps(p, x); }
  static void store(octet::bf16_t* p, F x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), to_bf16(x));
  }
  static void store(octet::f16_t* p, F x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), to_f16(x));
  }
  static void store(int8_t* p, F x) {
    const __m512i integers =
        _mm512_cvt_roundps_epi32(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(integers));
  }

  // These write only `lanes`.
  static void store(float* p, F x, __mmask16 lanes) { _mm512_mask_storeu_ps(p, lanes, x); }
  static void store(octet::bf16_t* p, F x, __mmask16 lanes) {
    _mm256_mask_storeu_epi16(p, lanes, to_bf16(x));
  }
  static void store(octet::f16_t* p, F x, __mmask16 lanes) {
    _mm256_mask_storeu_epi16(p, lanes, to_f16(x));
  }

  static F set(float x) { return _mm512_set1_ps(x); }
  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F fnma(F a, F b, F c) { return _mm512_fnmadd_ps(a, b, c); }
  static F reciprocal(F d) { return _mm512_div_ps(set(1.0f), d); }
  static F max(F a, F b) { return _mm512_max_ps(a, b); }
  static F min(F a, F b) { return _mm512_min_ps(a, b); }

  static U bits(F x) { return _mm512_castps_si512(x); }
  static F from_bits(U x) { return _mm512_castsi512_ps(x); }
  static U add_bits(U a, U b) { return _mm512_add_epi32(a, b); }
  static U sub_bits(U a, U b) { return _mm512_sub_epi32(a, b); }
  static U to_exponent(U x) { return _mm512_slli_epi32(x, 23); }

  static F even(F low, F high) {
    const U lanes = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(low, lanes, high);
  }
  static F odd(F low, F high) {
    const U lanes = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_permutex2var_ps(low, lanes, high);
  }

  static U zero_bits() { return _mm512_setzero_si512(); }
  static U max_magnitude(U so_far, F x) {
    const __m512i bits = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
    return _mm512_max_epu32(so_far, bits);
  }
  static uint32_t reduce(U bits) { return _mm512_reduce_max_epu32(bits); }

  using Acc = __m512i;  // eight int64
  static Acc zero_acc() { return _mm512_setzero_si512(); }
  // The instruction multiplies the even lanes.
  static Acc add_squares(Acc acc, U x) {
    const U odd = _mm512_srli_epi64(x, 32);
    const Acc squares = _mm512_add_epi64(_mm512_mul_epi32(x, x), _mm512_mul_epi32(odd, odd));
    return _mm512_add_epi64(acc, squares);
  }
  // Not _mm512_reduce_add_epi64: gcc 12 warns about what it leaves undefined on purpose.
  static int64_t total(Acc acc) {
    int64_t lanes[8];
    _mm512_storeu_si512(lanes, acc);
    int64_t all = 0;
    for (const int64_t lane : lanes) all += lane;
    return all;
  }

  // The rotation's butterfly among lanes 1 apart (within each run of 4), all in the register:
  // first (s, d, t, u) = (x0+x1, x0-x1, x2+x3, x2-x3), then (s+u, s-u, t+d, t-d).
  static F butterfly_1(F x) {
    const F sign_odd = _mm512_castsi512_ps(_mm512_set1_epi64(int64_t{1} << 63));
    const F swapped = _mm512_permute_ps(x, _MM_SHUFFLE(2, 3, 0, 1));
    const F sdtu = _mm512_add_ps(swapped, _mm512_xor_ps(x, sign_odd));
    const F left = _mm512_permute_ps(sdtu, _MM_SHUFFLE(2, 2, 0, 0));
    const F right = _mm512_permute_ps(sdtu, _MM_SHUFFLE(1, 1, 3, 3));
    return _mm512_add_ps(left, _mm512_xor_ps(right, sign_odd));
  }
  // The same among lanes 4 apart: whole 128-bit quarters take the place of the lanes.
  static F butterfly_4(F x) {
    const __m512i bits = _mm512_set1_epi32(static_cast<int>(0x80000000u));
    const F sign_odd = _mm512_castsi512_ps(_mm512_maskz_mov_epi32(0xf0f0, bits));
    const F swapped = _mm512_shuffle_f32x4(x, x, _MM_SHUFFLE(2, 3, 0, 1));
    const F sdtu = _mm512_add_ps(swapped, _mm512_xor_ps(x, sign_odd));
    const F left = _mm512_shuffle_f32x4(sdtu, sdtu, _MM_SHUFFLE(2, 2, 0, 0));
    const F right = _mm512_shuffle_f32x4(sdtu, sdtu, _MM_SHUFFLE(1, 1, 3, 3));
    return _mm512_add_ps(left, _mm512_xor_ps(right, sign_odd));
  }

 private:
  // Not vcvtneps2bf16: it flushes subnormals to zero; the contract does not.
  static __m256i to_bf16(F x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(
        _mm512_mask_mov_epi32(_mm512_srli_epi32(sum, 16), nan, _mm512_set1_epi32(0x7fc0)));
  }
  // The instruction keeps the sign and payload of a NaN; the contract does not.
  static __m256i to_f16(F x) {
    const __m256i rounded = _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm256_mask_mov_epi16(rounded, nan, _mm256_set1_epi16(0x7e00));
  }
};

}  // namespace
