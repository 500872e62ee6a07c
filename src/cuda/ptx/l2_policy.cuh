// What the L2 should do with the lines of a load or store with such a policy (sm_80 and newer).
// Made where it is used, by a few uniform instructions: hence `volatile`, so that a loop without
// registers to spare need not keep it.
#pragma once

#include <cstdint>

namespace octet::cuda::ptx {

// Evict them first.
__device__ __forceinline__ uint64_t evict_first_policy() {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// The behaviour without a policy.
__device__ __forceinline__ uint64_t evict_normal_policy() {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

}  // namespace octet::cuda::ptx
