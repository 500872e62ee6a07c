// Eight floats in a ymm register. See vec_scalar.h for what a Vec is.
#pragma once

#include <immintrin.h>

#include "tensor/dtype.h"

namespace {

struct VecAvx2 {
  static constexpr int kWidth = 8;
  using F = __m256;
  using U = __m256i;

  static F load(const float* p) { return _mm256_loadu_ps(p); }
  static F load(const octet::bf16_t* p) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static F load(const octet::f16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static F load(const int8_t* p) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
  }
  static F load(const int32_t* p) {
    return _mm256_cvtepi32_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }

  static void store(float* p, F x) { _mm256_storeu_ps(p, x); }
  static void store(octet::bf16_t* p, F x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    const __m256i rounded =
        _mm256_blendv_epi8(_mm256_srli_epi32(sum, 16), _mm256_set1_epi32(0x7fc0), nan);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(p),
        _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1)));
  }
  // The instruction keeps the sign and payload of a NaN; the contract does not.
  static void store(octet::f16_t* p, F x) {
    const F quiet = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));  // narrows to 0x7e00
    const F canonical = _mm256_blendv_ps(x, quiet, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm256_cvtps_ph(canonical, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  static void store(int8_t* p, F x) {
    const __m256 whole = _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m256i integers = _mm256_cvttps_epi32(whole);
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(integers), _mm256_extracti128_si256(integers, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(words, words));
  }

  static F set(float x) { return _mm256_set1_ps(x); }
  static F add(F a, F b) { return _mm256_add_ps(a, b); }
  static F sub(F a, F b) { return _mm256_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static F fnma(F a, F b, F c) { return _mm256_fnmadd_ps(a, b, c); }
  static F reciprocal(F d) { return _mm256_div_ps(set(1.0f), d); }
  static F max(F a, F b) { return _mm256_max_ps(a, b); }
  static F min(F a, F b) { return _mm256_min_ps(a, b); }

  static U bits(F x) { return _mm256_castps_si256(x); }
  static F from_bits(U x) { return _mm256_castsi256_ps(x); }
  static U add_bits(U a, U b) { return _mm256_add_epi32(a, b); }
  static U sub_bits(U a, U b) { return _mm256_sub_epi32(a, b); }
  static U to_exponent(U x) { return _mm256_slli_epi32(x, 23); }

  static F even(F low, F high) {
    return in_order(_mm256_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0)));
  }
  static F odd(F low, F high) {
    return in_order(_mm256_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1)));
  }

  static U zero_bits() { return _mm256_setzero_si256(); }
  static U max_magnitude(U so_far, F x) {
    const __m256i bits = _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7fffffff));
    return _mm256_max_epu32(so_far, bits);
  }
  static uint32_t reduce(U bits) {
    __m128i half = _mm_max_epu32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
    half = _mm_max_epu32(half, _mm_shuffle_epi32(half, _MM_SHUFFLE(1, 0, 3, 2)));
    half = _mm_max_epu32(half, _mm_shuffle_epi32(half, _MM_SHUFFLE(2, 3, 0, 1)));
    return static_cast<uint32_t>(_mm_cvtsi128_si32(half));
  }

  using Acc = __m256i;  // four int64
  static Acc zero_acc() { return _mm256_setzero_si256(); }
  // The instruction multiplies the even lanes.
  static Acc add_squares(Acc acc, U x) {
    const U odd = _mm256_srli_epi64(x, 32);
    const Acc squares = _mm256_add_epi64(_mm256_mul_epi32(x, x), _mm256_mul_epi32(odd, odd));
    return _mm256_add_epi64(acc, squares);
  }
  static int64_t total(Acc acc) {
    const __m128i two =
        _mm_add_epi64(_mm256_castsi256_si128(acc), _mm256_extracti128_si256(acc, 1));
    return _mm_cvtsi128_si64(two) + _mm_extract_epi64(two, 1);
  }

  // See VecAvx512::butterfly_1.
  static F butterfly_1(F x) {
    const F sign_odd = _mm256_castsi256_ps(_mm256_set1_epi64x(int64_t{1} << 63));
    const F swapped = _mm256_permute_ps(x, _MM_SHUFFLE(2, 3, 0, 1));
    const F sdtu = _mm256_add_ps(swapped, _mm256_xor_ps(x, sign_odd));
    const F left = _mm256_permute_ps(sdtu, _MM_SHUFFLE(2, 2, 0, 0));
    const F right = _mm256_permute_ps(sdtu, _MM_SHUFFLE(1, 1, 3, 3));
    return _mm256_add_ps(left, _mm256_xor_ps(right, sign_odd));
  }

 private:
  // A shuffle of two registers works on their halves: pairs come out as low, high, low, high.
  static F in_order(F x) {
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(x), _MM_SHUFFLE(3, 1, 2, 0)));
  }
};

// Four floats, for the butterfly among elements 4 apart: there a ymm register is already too wide.
struct VecSse {
  static constexpr int kWidth = 4;
  using F = __m128;
  static F load(const float* p) { return _mm_loadu_ps(p); }
  static void store(float* p, F x) { _mm_storeu_ps(p, x); }
  static F add(F a, F b) { return _mm_add_ps(a, b); }
  static F sub(F a, F b) { return _mm_sub_ps(a, b); }
};

}  // namespace
