// Threads of a block that meet without the others.
#pragma once

namespace octet::cuda::ptx {

// `threads` threads of the block meet at barrier `id`, 1 to 15.
__device__ __forceinline__ void named_sync(int id, int threads) {
  asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// The same without waiting for the others.
__device__ __forceinline__ void named_arrive(int id, int threads) {
  asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace octet::cuda::ptx
