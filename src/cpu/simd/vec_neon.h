// Four floats in a NEON register. See vec_scalar.h for what a Vec is.
#pragma once

#include <arm_neon.h>

#include "tensor/dtype.h"

namespace {

struct VecNeon {
  static constexpr int kWidth = 4;
  using F = float32x4_t;
  using U = uint32x4_t;

  static F load(const float* p) { return vld1q_f32(p); }
  static F load(const octet::bf16_t* p) {
    const uint16x4_t bits = vld1_u16(reinterpret_cast<const uint16_t*>(p));
    return vreinterpretq_f32_u32(vshll_n_u16(bits, 16));
  }
  static F load(const octet::f16_t* p) {
    const uint16x4_t bits = vld1_u16(reinterpret_cast<const uint16_t*>(p));
    return vcvt_f32_f16(vreinterpret_f16_u16(bits));
  }
  static F load(const int8_t* p) {
    int32_t four;
    __builtin_memcpy(&four, p, sizeof(four));
    const int16x8_t words = vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four)));
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(words)));
  }
  static F load(const int32_t* p) { return vcvtq_f32_s32(vld1q_s32(p)); }

  static void store(float* p, F x) { vst1q_f32(p, x); }
  static void store(octet::bf16_t* p, F x) {
    const uint32x4_t bits = vreinterpretq_u32_f32(x);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t sum = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);
    const uint32x4_t number = vceqq_f32(x, x);
    const uint32x4_t rounded = vbslq_u32(number, vshrq_n_u32(sum, 16), vdupq_n_u32(0x7fc0));
    vst1_u16(reinterpret_cast<uint16_t*>(p), vmovn_u32(rounded));
  }
  // The instruction keeps the sign and payload of a NaN; the contract does not.
  static void store(octet::f16_t* p, F x) {
    const uint16x4_t number = vmovn_u32(vceqq_f32(x, x));
    const uint16x4_t rounded = vreinterpret_u16_f16(vcvt_f16_f32(x));
    vst1_u16(reinterpret_cast<uint16_t*>(p), vbsl_u16(number, rounded, vdup_n_u16(0x7e00)));
  }
  static void store(int8_t* p, F x) {
    const int16x4_t words = vmovn_s32(vcvtnq_s32_f32(x));
    const int8x8_t bytes = vmovn_s16(vcombine_s16(words, words));
    const int32_t four = vget_lane_s32(vreinterpret_s32_s8(bytes), 0);
    __builtin_memcpy(p, &four, sizeof(four));
  }

  static F set(float x) { return vdupq_n_f32(x); }
  static F add(F a, F b) { return vaddq_f32(a, b); }
  static F sub(F a, F b) { return vsubq_f32(a, b); }
  static F mul(F a, F b) { return vmulq_f32(a, b); }
  static F fma(F a, F b, F c) { return vfmaq_f32(c, a, b); }
  static F fnma(F a, F b, F c) { return vfmsq_f32(c, a, b); }
  static F reciprocal(F d) { return vdivq_f32(set(1.0f), d); }
  static F max(F a, F b) { return vmaxq_f32(a, b); }
  static F min(F a, F b) { return vminq_f32(a, b); }

  static U bits(F x) { return vreinterpretq_u32_f32(x); }
  static F from_bits(U x) { return vreinterpretq_f32_u32(x); }
  static U add_bits(U a, U b) { return vaddq_u32(a, b); }
  static U sub_bits(U a, U b) { return vsubq_u32(a, b); }
  static U to_exponent(U x) { return vshlq_n_u32(x, 23); }

  static F even(F low, F high) { return vuzp1q_f32(low, high); }
  static F odd(F low, F high) { return vuzp2q_f32(low, high); }

  static U zero_bits() { return vdupq_n_u32(0); }
  static U max_magnitude(U so_far, F x) {
    return vmaxq_u32(so_far, vandq_u32(vreinterpretq_u32_f32(x), vdupq_n_u32(0x7fffffff)));
  }
  static uint32_t reduce(U bits) { return vmaxvq_u32(bits); }

  using Acc = int64x2_t;
  static Acc zero_acc() { return vdupq_n_s64(0); }
  static Acc add_squares(Acc acc, U x) {
    const int32x4_t lanes = vreinterpretq_s32_u32(x);
    const Acc low = vmlal_s32(acc, vget_low_s32(lanes), vget_low_s32(lanes));
    return vmlal_high_s32(low, lanes, lanes);
  }
  static int64_t total(Acc acc) { return vaddvq_s64(acc); }

  // See VecAvx512::butterfly_1. The pairs (s, d) and (t, u) are regrouped by duplicating them.
  static F butterfly_1(F x) {
    const F swapped = vrev64q_f32(x);
    const F sdtu = vaddq_f32(swapped, flip_odd(x));
    const F left = vtrn1q_f32(sdtu, sdtu);       // s s t t
    const F turned = vextq_f32(sdtu, sdtu, 2);   // t u s d
    const F right = vtrn2q_f32(turned, turned);  // u u d d
    return vaddq_f32(left, flip_odd(right));
  }

 private:
  static F flip_odd(F x) {
    const uint32x4_t sign = vreinterpretq_u32_u64(vdupq_n_u64(uint64_t{1} << 63));
    return vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(x), sign));
  }
};

}  // namespace
