// Barriers in shared memory on which copies and warps arrive, and which anyone may wait for.
#pragma once

#include <cstdint>

namespace octet::cuda::ptx {

// Of warps that have read something, one lane speaks for all. compute-sanitizer's racecheck does
// not understand that: it takes a barrier to cover those threads that arrive themselves. Letting
// all of them costs mma.sync's GEMM 2 %.
#if OCTET_RACECHECK
inline constexpr bool kEveryLaneArrives = true;
#else
inline constexpr bool kEveryLaneArrives = false;
#endif
inline constexpr int kArrivalsOfWarp = kEveryLaneArrives ? 32 : 1;

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

// --- Hopper ---

// What was initialised is visible to the whole cluster and to the copies.
__device__ __forceinline__ void mbarrier_publish_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrives, and the phase is not complete before so many bytes have been copied.
__device__ __forceinline__ void mbarrier_expect(uint32_t barrier, uint32_t bytes) {
  asm volatile(
      "{\n .reg .b64 state;\n mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1;\n}" ::"r"(
          barrier),
      "r"(bytes)
      : "memory");
}

// At the barrier in the same place of a block of the cluster, which may be this one. Relaxed: it
// says that something was read, and a release would wait for all memory of the GPU (on an H200 the
// GEMM had 1042 TOPS with it and 1532 without, 128x256, m = 4096, n = 13824, k = 4608).
__device__ __forceinline__ void mbarrier_arrive_at(uint32_t barrier, uint32_t block) {
  asm volatile(
      "{\n .reg .b32 there;\n mapa.shared::cluster.u32 there, %0, %1;\n"
      " mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [there];\n}" ::"r"(barrier),
      "r"(block)
      : "memory");
}

// As mbarrier_wait; the thread sleeps meanwhile, as long as the hardware sees fit.
__device__ __forceinline__ void mbarrier_sleep(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n .reg .pred done;\nagain:\n"
      " mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
      " @!done bra again;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

}  // namespace octet::cuda::ptx
