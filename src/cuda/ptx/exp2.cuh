// The exponential of the special function unit.
#pragma once

namespace octet::cuda::ptx {

// 2^x within 2 units in the last place; 1 at 0, 0 at -infinity and below -126.
__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace octet::cuda::ptx
