// One float as a "vector": the portable implementation, and the tails of the wide ones.
//
// A Vec type is the set of primitives that the row algorithms (rows/row_algorithms.h) are written
// in. Every primitive is one exactly rounded IEEE operation or a conversion of the contract, so all
// Vec types give the same bits. Everything is static and internal to the translation unit that
// includes it (anonymous namespace): code compiled for a wide ISA must never be the copy that the
// linker picks for a narrow one.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace {

struct VecScalar {
  static constexpr int kWidth = 1;
  using F = float;
  using U = uint32_t;  // the bits of an F

  static F load(const float* p) { return *p; }
  static F load(const octet::bf16_t* p) { return octet::to_f32(*p); }
  static F load(const octet::f16_t* p) { return octet::to_f32(*p); }
  static F load(const int8_t* p) { return static_cast<float>(*p); }
  static F load(const int32_t* p) { return static_cast<float>(*p); }

  static void store(float* p, F x) { *p = x; }
  static void store(octet::bf16_t* p, F x) { *p = octet::from_f32<octet::bf16_t>(x); }
  static void store(octet::f16_t* p, F x) { *p = octet::from_f32<octet::f16_t>(x); }
  // Rounds to the nearest integer, ties to even; x is in [-127, 127]. Adding 1.5 * 2^23 puts the
  // ulp at 1, which needs no library call and no rounding-mode change.
  static void store(int8_t* p, F x) {
    const float shifted = x + 12582912.0f;
    *p = static_cast<int8_t>(__builtin_bit_cast(int32_t, shifted));
  }

  static F set(float x) { return x; }
  static F add(F a, F b) { return a + b; }
  static F sub(F a, F b) { return a - b; }
  static F mul(F a, F b) { return a * b; }
  static F fma(F a, F b, F c) { return __builtin_fmaf(a, b, c); }
  static F fnma(F a, F b, F c) { return __builtin_fmaf(-a, b, c); }
  static F reciprocal(F d) { return 1.0f / d; }
  static F max(F a, F b) { return a > b ? a : b; }
  static F min(F a, F b) { return a < b ? a : b; }

  static U bits(F x) { return __builtin_bit_cast(U, x); }
  static F from_bits(U x) { return __builtin_bit_cast(F, x); }
  static U add_bits(U a, U b) { return a + b; }
  static U sub_bits(U a, U b) { return a - b; }
  static U to_exponent(U x) { return x << 23; }

  // Every other lane of two vectors that lie side by side.
  static F even(F low, F) { return low; }
  static F odd(F, F high) { return high; }

  // Bits of |x|, compared as integers: ordered like |x|, with NaN on top.
  static U zero_bits() { return 0; }
  static U max_magnitude(U so_far, F x) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, x) & 0x7fffffffu;
    return bits > so_far ? bits : so_far;
  }
  static uint32_t reduce(U bits) { return bits; }

  // Exact sums of squares of lanes as signed integers.
  using Acc = int64_t;
  static Acc zero_acc() { return 0; }
  static Acc add_squares(Acc acc, U x) {
    const int64_t lane = static_cast<int32_t>(x);
    return acc + lane * lane;
  }
  static int64_t total(Acc acc) { return acc; }
};

}  // namespace
