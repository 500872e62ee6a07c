// Barriers in shared memory at which copies and warps arrive, and for which anyone may wait.
#pragma once

#include <cstdint>

namespace octet::cuda::ptx {

// One lane arrives for a whole warp that has read something. compute-sanitizer's racecheck does not
// understand that: to it, a barrier covers only the threads that arrive themselves. Letting all of
// them arrive costs mma.sync's GEMM 2 %.
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

// Waits until the phase of this parity is complete. The phase before the first, of parity 1, is.
__device__ __forceinline__ void mbarrier_wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n .reg .pred done;\nagain:\n"
      " mbarrier.test_wait.parity.shared.b64 done, [%0], %1;\n"
      " @!done bra again;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// --- Hopper ---

// Makes initialised barriers visible to the whole cluster and to the copies.
__device__ __forceinline__ void mbarrier_publish_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrives, and requires this many bytes to be copied before the phase is complete.
__device__ __forceinline__ void mbarrier_expect(uint32_t barrier, uint32_t bytes) {
  asm volatile(
      "{\n .reg .b64 state;\n mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1;\n}" ::"r"(
          barrier),
      "r"(bytes)
      : "memory");
}

// Arrives at the same barrier in a block of the cluster, which may be this one. Relaxed: it says
// that something was read, and a release would wait for all memory of the GPU (on an H200 the GEMM
// reached 1042 TOPS with it and 1532 without, 128x256, m = 4096, n = 13824, k = 4608).
__device__ __forceinline__ void mbarrier_arrive_at(uint32_t barrier, uint32_t block) {
  asm volatile(
      "{\n .reg .b32 there;\n mapa.shared::cluster.u32 there, %0, %1;\n"
      " mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [there];\n}" ::"r"(barrier),
      "r"(block)
      : "memory");
}

// Like mbarrier_wait, but the thread sleeps meanwhile, as long as the hardware sees fit.
__device__ __forceinline__ void mbarrier_sleep(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n .reg .pred done;\nagain:\n"
      " mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
      " @!done bra again;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

}  // namespace octet::cuda::ptx
