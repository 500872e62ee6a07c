// From a row's largest magnitude to its scale, and from values to int8: the two steps that every
// quantizing kernel shares. Bit for bit what ref/quantize.cpp does; -ftz=false is assumed.
#pragma once

#include <cstdint>

namespace octet::cuda {

inline constexpr uint32_t kInfinityBits = 0x7f800000u;

// `amax`: the largest magnitude of a row, or infinity or NaN if the row has one.
struct RowScale {
  float amax;
  float inverse;  // 127 / amax, or 0 if the whole row becomes 0

  __device__ explicit RowScale(float row_amax) : amax(row_amax) {
    inverse = __fdiv_rn(127.0f, amax);
    if (!finite() || __float_as_uint(inverse) >= kInfinityBits) inverse = 0.0f;
  }
  // False: q is 0, and must not be computed, as NaN * 0 is not 0.
  __device__ bool finite() const { return __float_as_uint(amax) < kInfinityBits; }
  // Stored with the row. Not in the constructor: one thread needs it, but all need the inverse.
  __device__ float scale() const {
    if (!finite()) return __uint_as_float(0x7fc00000u);
    return inverse == 0.0f ? 0.0f : __fdiv_rn(amax, 127.0f);
  }
};

inline constexpr float kUlpIsOne = 12582912.0f;  // 1.5 * 2^23, even and a multiple of 256

// rint(scaled) in the low byte. The sum's ulp is 1, so the adder does the rounding: at most half
// the cost of a float-to-int conversion, and the bits to be packed are already in place.
__device__ inline uint32_t rounded_byte(float scaled) {
  return __float_as_uint(__fadd_rn(scaled, kUlpIsOne));
}

// The same for value * inverse. The product is at most 127 (1 + 2^-23); it must be rounded before
// the sum, hence no fma.
__device__ inline uint32_t quantized_byte(float value, float inverse) {
  return rounded_byte(__fmul_rn(value, inverse));
}

// The low bytes of four, v[0]'s in the lowest.
__device__ inline uint32_t joined_bytes(uint32_t b0, uint32_t b1, uint32_t b2, uint32_t b3) {
  return __byte_perm(__byte_perm(b0, b1, 0x0040), __byte_perm(b2, b3, 0x0040), 0x5410);
}

// Four values as int8, v[0] in the lowest byte.
__device__ inline uint32_t quantized_word(const float* v, float inverse) {
  return joined_bytes(quantized_byte(v[0], inverse), quantized_byte(v[1], inverse),
                      quantized_byte(v[2], inverse), quantized_byte(v[3], inverse));
}

}  // namespace octet::cuda
