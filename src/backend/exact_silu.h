// silu(x) = x / (1 + exp(-x)), the same bits on every device: nothing but single IEEE-rounded f32
// operations, in one order, with every fma written out. `ref`, the CPU's vectors and device code
// all run the one template below, each in its own primitives.
//
// exp(-x) = 2^z, z = -x * log2(e). Adding 1.5 * 2^23 leaves the nearest integer n in the low bits,
// the rest f = z - n is exact, 2^f is a polynomial and n is added to its exponent. 1 / (1 + 2^z)
// begins with the bit trick (5 % off) and takes three Newton steps.
//
// z is clamped to +-125 and not to +-126, although 2^z would still be normal there: the first guess
// of the reciprocal would be denormal. So a device that flushes denormals gives the same bits too,
// unless x or the result is denormal itself.
//
// Error, relative: at most 4.2e-7, the polynomial's 1.1e-7 and five roundings; for negative x also
// 7.3e-8 * |x|, because z is rounded once, and its constant too, and exp() makes a relative error
// of what was an absolute one. Below x = -86.64 the clamp holds and the result is x * 2^-125 where
// silu vanishes: no more than 2^-100 off for any x above -2^25. NaN gives NaN, and -infinity gives
// -infinity: what overflowed before must show.
//
// Included by files compiled for one instruction set: templates on their internal types, and
// functions that are always inlined.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define OCTET_HOST_DEVICE __host__ __device__
#else
#define OCTET_HOST_DEVICE
#endif

namespace octet {

// V has float values F and their bits U: add, sub, mul, fma(a, b, c) = a * b + c and
// fnma(a, b, c) = c - a * b, rounded once; max and min; set, set_bits; bits and from_bits, which
// reinterpret; add_bits and sub_bits, which wrap; to_exponent, a shift left by 23.

// 2^z for z in +-126.
template <class V>
[[gnu::always_inline]] OCTET_HOST_DEVICE inline typename V::F exact_power_of_two(typename V::F z) {
  const auto shift = V::set(12582912.0f);  // 1.5 * 2^23
  const auto shifted = V::add(z, shift);
  const auto f = V::sub(z, V::sub(shifted, shift));

  auto p = V::set(0x1.5bba14p-10f);
  p = V::fma(p, f, V::set(0x1.3cea88p-7f));
  p = V::fma(p, f, V::set(0x1.c6b752p-5f));
  p = V::fma(p, f, V::set(0x1.ebf9bcp-3f));
  p = V::fma(p, f, V::set(0x1.62e42ap-1f));
  p = V::fma(p, f, V::set(1.0f));
  return V::from_bits(V::add_bits(V::bits(p), V::to_exponent(V::bits(shifted))));
}

template <class V>
[[gnu::always_inline]] OCTET_HOST_DEVICE inline typename V::F exact_silu(typename V::F x) {
  auto z = V::mul(x, V::set(-0x1.715476p0f));  // log2(e)
  z = V::min(V::max(z, V::set(-125.0f)), V::set(125.0f));
  const auto d = V::add(V::set(1.0f), exact_power_of_two<V>(z));
  auto y = V::from_bits(V::sub_bits(V::set_bits(0x7ef311c0u), V::bits(d)));
  y = V::fma(y, V::fnma(d, y, V::set(1.0f)), y);
  y = V::fma(y, V::fnma(d, y, V::set(1.0f)), y);
  y = V::fma(y, V::fnma(d, y, V::set(1.0f)), y);
  return V::mul(x, y);
}

// The primitives on one float. Device code needs intrinsics: nvcc would contract operators.
struct ExactFloat {
  using F = float;
  using U = uint32_t;

#define OCTET_EXACT [[gnu::always_inline]] OCTET_HOST_DEVICE static inline
#if defined(__CUDA_ARCH__)
  OCTET_EXACT F add(F a, F b) { return __fadd_rn(a, b); }
  OCTET_EXACT F sub(F a, F b) { return __fsub_rn(a, b); }
  OCTET_EXACT F mul(F a, F b) { return __fmul_rn(a, b); }
  OCTET_EXACT F fma(F a, F b, F c) { return __fmaf_rn(a, b, c); }
  OCTET_EXACT F fnma(F a, F b, F c) { return __fmaf_rn(-a, b, c); }
  OCTET_EXACT U bits(F x) { return __float_as_uint(x); }
  OCTET_EXACT F from_bits(U x) { return __uint_as_float(x); }
#else
  OCTET_EXACT F add(F a, F b) { return a + b; }
  OCTET_EXACT F sub(F a, F b) { return a - b; }
  OCTET_EXACT F mul(F a, F b) { return a * b; }
  OCTET_EXACT F fma(F a, F b, F c) { return __builtin_fmaf(a, b, c); }
  OCTET_EXACT F fnma(F a, F b, F c) { return __builtin_fmaf(-a, b, c); }
  OCTET_EXACT U bits(F x) { return __builtin_bit_cast(U, x); }
  OCTET_EXACT F from_bits(U x) { return __builtin_bit_cast(F, x); }
#endif
  OCTET_EXACT F max(F a, F b) { return a > b ? a : b; }
  OCTET_EXACT F min(F a, F b) { return a < b ? a : b; }
  OCTET_EXACT F set(float x) { return x; }
  OCTET_EXACT U set_bits(uint32_t x) { return x; }
  OCTET_EXACT U add_bits(U a, U b) { return a + b; }
  OCTET_EXACT U sub_bits(U a, U b) { return a - b; }
  OCTET_EXACT U to_exponent(U x) { return x << 23; }
#undef OCTET_EXACT
};

[[gnu::always_inline]] OCTET_HOST_DEVICE inline float exact_silu(float x) {
  return exact_silu<ExactFloat>(x);
}

}  // namespace octet
