// Loads and stores of global memory that the compiler would not generate by itself.
#pragma once

#include <cstdint>

namespace octet::cuda::ptx {

// Loads what no kernel writes while this one runs, or zeros. Without a branch, like store_if.
__device__ __forceinline__ float4 load_if(bool wanted, const float* from) {
  float4 v = {};
  asm("{\n .reg .pred wanted;\n setp.ne.b32 wanted, %5, 0;\n"
      " @wanted ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];\n}"
      : "+f"(v.x), "+f"(v.y), "+f"(v.z), "+f"(v.w)
      : "l"(from), "r"(static_cast<int>(wanted)));
  return v;
}

// The same, but always from memory, even if it was loaded before.
__device__ __forceinline__ float4 load_again_if(bool wanted, const float* from) {
  float4 v = {};
  asm volatile(
      "{\n .reg .pred wanted;\n setp.ne.b32 wanted, %5, 0;\n"
      " @wanted ld.global.v4.f32 {%0, %1, %2, %3}, [%4];\n}"
      : "+f"(v.x), "+f"(v.y), "+f"(v.z), "+f"(v.w)
      : "l"(from), "r"(static_cast<int>(wanted))
      : "memory");
  return v;
}

// A predicate guards the store, so that the code around it needs no branch. `policy`: see
// l2_policy.cuh.
__device__ __forceinline__ void store_if(bool wanted, void* to, const uint32_t (&words)[2],
                                         uint64_t policy) {
  asm volatile(
      "{\n .reg .pred wanted;\n setp.ne.b32 wanted, %0, 0;\n"
      " @wanted st.global.L2::cache_hint.v2.b32 [%1], {%2, %3}, %4;\n}" ::"r"(
          static_cast<int>(wanted)),
      "l"(to), "r"(words[0]), "r"(words[1]), "l"(policy)
      : "memory");
}

__device__ __forceinline__ void store_if(bool wanted, void* to, const uint32_t (&words)[4],
                                         uint64_t policy) {
  asm volatile(
      "{\n .reg .pred wanted;\n setp.ne.b32 wanted, %0, 0;\n"
      " @wanted st.global.L2::cache_hint.v4.b32 [%1], {%2, %3, %4, %5}, %6;\n}" ::"r"(
          static_cast<int>(wanted)),
      "l"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]), "l"(policy)
      : "memory");
}

}  // namespace octet::cuda::ptx
