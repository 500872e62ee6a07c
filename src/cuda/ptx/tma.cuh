// Hopper's bulk copies of boxes of a tensor, global memory to shared, in one instruction of one
// thread; a barrier counts the bytes that arrive.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace octet::cuda::ptx {

// The box of a map of two dimensions whose first element is (x, y), x along rows. To the same place
// in the shared memory of every block of the cluster whose bit is set in `blocks`, and counted by
// the barrier at the same place as `barrier` there.
template <bool kMulticast>
__device__ __forceinline__ void tma_load(uint32_t to, const CUtensorMap* map, uint32_t barrier,
                                         int x, int y, uint16_t blocks) {
  if constexpr (kMulticast) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(y), "h"(blocks)
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(y)
        : "memory");
  }
}

// The same for a map of three dimensions.
template <bool kMulticast>
__device__ __forceinline__ void tma_load(uint32_t to, const CUtensorMap* map, uint32_t barrier,
                                         int x, int y, int z, uint16_t blocks) {
  if constexpr (kMulticast) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(blocks)
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z)
        : "memory");
  }
}

// And with a policy of l2_policy.cuh.
template <bool kMulticast>
__device__ __forceinline__ void tma_load(uint32_t to, const CUtensorMap* map, uint32_t barrier,
                                         int x, int y, int z, uint16_t blocks, uint64_t policy) {
  if constexpr (kMulticast) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster.L2::cache_hint [%0], [%1, {%3, %4, %5}], [%2], %6, %7;" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(blocks), "l"(policy)
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".L2::cache_hint [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "l"(policy)
        : "memory");
  }
}

// For a map of five dimensions, from the beginning of the three in the middle.
template <bool kMulticast>
__device__ __forceinline__ void tma_load_groups(uint32_t to, const CUtensorMap* map,
                                                uint32_t barrier, int x, int group, uint16_t blocks,
                                                uint64_t policy) {
  if constexpr (kMulticast) {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster.L2::cache_hint [%0], [%1, {%3, 0, 0, 0, %4}], [%2], %5, %6;" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(group), "h"(blocks), "l"(policy)
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".L2::cache_hint [%0], [%1, {%3, 0, 0, 0, %4}], [%2], %5;" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(group), "l"(policy)
        : "memory");
  }
}

// This many contiguous bytes, a multiple of 16, from an address that is a multiple of 16.
__device__ __forceinline__ void bulk_load(uint32_t to, const void* from, uint32_t bytes,
                                          uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}

}  // namespace octet::cuda::ptx
