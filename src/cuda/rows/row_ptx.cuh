// Instructions that CUDA C++ has no name for without cuda_fp16.h and cuda_bf16.h, one per function.
#pragma once

#include <cstdint>

namespace octet::cuda {

// The larger of a and |b|; NaN if either is one (fmaxf would drop it), in a pattern above that of
// every number, so that from here on an unsigned max of the bits keeps the order.
__device__ inline float max_magnitude(float a, float b) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(fabsf(b)));
  return larger;
}

__device__ inline float f16_to_f32(uint16_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

// Two values rounded to nearest even, `low` in the low half.
__device__ inline uint32_t pack_bf16(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

__device__ inline uint32_t pack_f16(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// One store each: the compiler may split an assignment of a vector.
__device__ inline void store_vector(void* at, uint2 v) {
  asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(at), "r"(v.x), "r"(v.y) : "memory");
}
__device__ inline void store_vector(void* at, uint4 v) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(v.x), "r"(v.y), "r"(v.z),
               "r"(v.w)
               : "memory");
}

}  // namespace octet::cuda
