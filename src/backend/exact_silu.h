// silu(x) = x / (1 + exp(-x)), the same bits on every device: nothing but single IEEE-rounded f32
// operations, in one order, with every fma written out. `ref`, the CPU's vectors and device code
// all run the one template below, each in its own primitives.
//
// exp(-x) = 2^(n + f): adding 1.5 * 2^23 to -x * log2(e) leaves the nearest integer n in the low
// bits, the rest f is rounded once, 2^f is a polynomial. 1 / (1 + 2^n 2^f) is the correctly rounded
// quotient, which CPUs divide for and GPUs refine in two steps from their own guess. (An earlier
// sequence did without a division: its guess by bits and three Newton steps were seven operations
// of 22 on a GPU, where the whole of SwiGLU's cost is the number of its instructions.)
//
// x is clamped to +-86.6: 2^n stays normal, and so do the quotient and what leads to it. So a
// device that flushes denormals gives the same bits too, unless x or the result is denormal itself.
//
// Error, relative: at most 3.8e-7, the polynomial's 1.1e-7 and five roundings; for negative x also
// 1.4e-8 * |x|, because log2(e) is rounded, and exp() makes a relative error of what was an
// absolute one. Below x = -86.6 the clamp holds, and the result is x times a constant below 2^-124
// where silu vanishes: no more than 2^-99 off for any x above -2^25. NaN gives NaN, and -infinity
// gives -infinity: what overflowed before must show.
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
// fnma(a, b, c) = c - a * b, rounded once; max and min; reciprocal(d) = 1 / d, correctly rounded
// for d from 1 to 2^125; set; bits and from_bits, which reinterpret; add_bits, which wraps;
// to_exponent, a shift left by 23.

// 2^f for f in +-0.5.
template <class V>
[[gnu::always_inline]] OCTET_HOST_DEVICE inline typename V::F exact_fractional_power(
    typename V::F f) {
  auto p = V::set(0x1.5bba14p-10f);
  p = V::fma(p, f, V::set(0x1.3cea88p-7f));
  p = V::fma(p, f, V::set(0x1.c6b752p-5f));
  p = V::fma(p, f, V::set(0x1.ebf9bcp-3f));
  p = V::fma(p, f, V::set(0x1.62e42ap-1f));
  return V::fma(p, f, V::set(1.0f));
}

// 2^z for z in +-126.
template <class V>
[[gnu::always_inline]] OCTET_HOST_DEVICE inline typename V::F exact_power_of_two(typename V::F z) {
  const auto shift = V::set(12582912.0f);  // 1.5 * 2^23
  const auto shifted = V::add(z, shift);
  const auto p = exact_fractional_power<V>(V::sub(z, V::sub(shifted, shift)));
  return V::from_bits(V::add_bits(V::bits(p), V::to_exponent(V::bits(shifted))));
}

template <class V>
[[gnu::always_inline]] OCTET_HOST_DEVICE inline typename V::F exact_silu(typename V::F x) {
  const auto log2_e = V::set(0x1.715476p0f);
  const auto shift = V::set(12583039.0f);  // 1.5 * 2^23 + 127: the low bits are those of 2^n
  const auto clamped = V::min(V::max(x, V::set(-86.6f)), V::set(86.6f));
  const auto shifted = V::fnma(clamped, log2_e, shift);
  const auto f = V::fnma(clamped, log2_e, V::sub(shift, shifted));
  const auto whole = V::from_bits(V::to_exponent(V::bits(shifted)));
  const auto d = V::fma(exact_fractional_power<V>(f), whole, V::set(1.0f));
  return V::mul(x, V::reciprocal(d));
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
  // The fast path of __frcp_rn, which is the only one for such d.
  OCTET_EXACT F reciprocal(F d) {
    float guess;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(guess) : "f"(d));
    return __fmaf_rn(guess, __fmaf_rn(-d, guess, 1.0f), guess);
  }
  OCTET_EXACT U bits(F x) { return __float_as_uint(x); }
  OCTET_EXACT F from_bits(U x) { return __uint_as_float(x); }
#else
  OCTET_EXACT F add(F a, F b) { return a + b; }
  OCTET_EXACT F sub(F a, F b) { return a - b; }
  OCTET_EXACT F mul(F a, F b) { return a * b; }
  OCTET_EXACT F fma(F a, F b, F c) { return __builtin_fmaf(a, b, c); }
  OCTET_EXACT F fnma(F a, F b, F c) { return __builtin_fmaf(-a, b, c); }
  OCTET_EXACT F reciprocal(F d) { return 1.0f / d; }
  OCTET_EXACT U bits(F x) { return __builtin_bit_cast(U, x); }
  OCTET_EXACT F from_bits(U x) { return __builtin_bit_cast(F, x); }
#endif
  OCTET_EXACT F max(F a, F b) { return a > b ? a : b; }
  OCTET_EXACT F min(F a, F b) { return a < b ? a : b; }
  OCTET_EXACT F set(float x) { return x; }
  OCTET_EXACT U add_bits(U a, U b) { return a + b; }
  OCTET_EXACT U to_exponent(U x) { return x << 23; }
#undef OCTET_EXACT
};

[[gnu::always_inline]] OCTET_HOST_DEVICE inline float exact_silu(float x) {
  return exact_silu<ExactFloat>(x);
}

}  // namespace octet
