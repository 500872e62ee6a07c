// Shared memory in the form that instructions take.
#pragma once

#include <cstdint>

namespace octet::cuda::ptx {

// A pointer into shared memory, for instructions.
__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// Makes this thread's earlier stores to shared memory visible to wgmma and TMA, which otherwise see
// them in no particular order (Hopper). Call it before the barrier that announces them.
__device__ __forceinline__ void publish_stores() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Two floats at a multiple of eight bytes.
__device__ __forceinline__ float2 shared_load_pair(uint32_t address) {
  float2 pair;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(pair.x), "=f"(pair.y) : "r"(address));
  return pair;
}

// Four at a multiple of sixteen.
__device__ __forceinline__ float4 shared_load_four(uint32_t address) {
  float4 four;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w)
               : "r"(address));
  return four;
}

}  // namespace octet::cuda::ptx
