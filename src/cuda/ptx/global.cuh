// Loads and stores of global memory that the compiler would not write of itself.
#pragma once

#include <cstdint>

namespace octet::cuda::ptx {

// Not from registers, should the same have been loaded before, and not before the stores above it,
// which it might read (hence no .nc).
__device__ __forceinline__ float4 load_again(const float* from) {
  float4 v;
  asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(from)
               : "memory");
  return v;
}

// A predicate guards the store, so that the code around it needs no branch.
__device__ __forceinline__ void store_if(bool wanted, void* to, const uint32_t (&words)[2]) {
  asm volatile(
      "{\n .reg .pred wanted;\n setp.ne.b32 wanted, %0, 0;\n"
      " @wanted st.global.v2.b32 [%1], {%2, %3};\n}" ::"r"(static_cast<int>(wanted)),
      "l"(to), "r"(words[0]), "r"(words[1])
      : "memory");
}

__device__ __forceinline__ void store_if(bool wanted, void* to, const uint32_t (&words)[4]) {
  asm volatile(
      "{\n .reg .pred wanted;\n setp.ne.b32 wanted, %0, 0;\n"
      " @wanted st.global.v4.b32 [%1], {%2, %3, %4, %5};\n}" ::"r"(static_cast<int>(wanted)),
      "l"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
      : "memory");
}

__device__ __forceinline__ void store_if(bool wanted, void* to, const uint32_t (&words)[8]) {
  store_if(wanted, to, {words[0], words[1], words[2], words[3]});
  store_if(wanted, static_cast<unsigned char*>(to) + 16, {words[4], words[5], words[6], words[7]});
}

}  // namespace octet::cuda::ptx
