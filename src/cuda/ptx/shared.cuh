// Shared memory as the instructions see it.
#pragma once

#include <cstdint>

namespace octet::cuda::ptx {

// A pointer into shared memory as the instructions take it.
__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// What this thread stored in shared memory so far can be read by wgmma and TMA, which otherwise see
// it in no particular order (Hopper). Before the barrier that tells them.
__device__ __forceinline__ void publish_stores() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace octet::cuda::ptx
