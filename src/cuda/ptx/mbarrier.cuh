// Barriers in shared memory on which copies and warps arrive, and which anyone may wait for.
#pragma once

#include <cstdint>

namespace octet::cuda::ptx {

__device__ __forceinline__ void mbarrier_init(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void mbarrier_arrive(uint32_t barrier) {
  asm volatile("{\n .reg .b64 state;\n mbarrier.arrive.shared.b64 state, [%0];\n}" ::"r"(barrier)
               : "memory");
}

// This thread arrives once all of its copies so far are done; counts as one of the arrivals.
__device__ __forceinline__ void mbarrier_arrive_after_copies(uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier) : "memory");
}

// Until the phase of this parity is complete. The phase before the first has parity 1 and is.
__device__ __forceinline__ void mbarrier_wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n .reg .pred done;\nagain:\n"
      " mbarrier.test_wait.parity.shared.b64 done, [%0], %1;\n"
      " @!done bra again;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

}  // namespace octet::cuda::ptx
