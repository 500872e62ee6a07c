// Asynchronous copies from global to shared memory, one instruction per function (sm_80 and newer).
#pragma once

#include <cstdint>

namespace octet::cuda::ptx {

// Copies 16 bytes if they are wanted. Bypasses L1: a block reads its tile once. The L2 fetches the
// whole 128-byte line at once. The predicate is part of the instruction: with a branch around it,
// the compiler would load the constants of the address again for each copy, and wait for them.
__device__ __forceinline__ void cp_async_16_if(bool wanted, uint32_t to, const void* from) {
  asm volatile(
      "{\n .reg .pred wanted;\n setp.ne.b32 wanted, %2, 0;\n"
      " @wanted cp.async.cg.shared.global.L2::128B [%0], [%1], 16;\n}" ::"r"(to),
      "l"(from), "r"(static_cast<int>(wanted))
      : "memory");
}

// Copies 16 bytes, or writes zeros and reads nothing.
__device__ __forceinline__ void cp_async_16_or_zeros(bool wanted, uint32_t to, const void* from) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(wanted ? 16 : 0)
               : "memory");
}

// The same with a policy of l2_policy.cuh.
__device__ __forceinline__ void cp_async_16_or_zeros(bool wanted, uint32_t to, const void* from,
                                                     uint64_t policy) {
  asm volatile(
      "cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2, %3;" ::"r"(to),
      "l"(from), "r"(wanted ? 16 : 0), "l"(policy)
      : "memory");
}

// Waits until this thread's copies have arrived, for this thread.
__device__ __forceinline__ void cp_async_wait_all() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

// A value that all threads of a block share, in a register whose origin is hidden: a constant would
// be loaded again, and waited for, at each use. Has a barrier, and a place for each kValue: a
// second value in the same place would overtake threads that still read the first.
template <int kValue>
__device__ __forceinline__ uint32_t keep_in_register(uint32_t value) {
  __shared__ uint32_t shared;
  if (threadIdx.x == 0) shared = value;
  __syncthreads();
  return *const_cast<volatile uint32_t*>(&shared);
}

}  // namespace octet::cuda::ptx
