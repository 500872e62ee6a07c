// Blocks of a cluster (Hopper).
#pragma once

#include <cstdint>

namespace octet::cuda::ptx {

// This block's number in its cluster.
__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// All threads of the cluster that have not exited meet, each warp as a whole. Does not order
// earlier writes or arrivals.
__device__ __forceinline__ void cluster_meet() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;" ::
                   : "memory");
}

// The same, and orders them.
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}

}  // namespace octet::cuda::ptx
