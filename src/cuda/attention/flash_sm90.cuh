// Attention in one kernel for Hopper (sm_90a): wgmma and TMA, scores never leave the registers.
//
// One warp fetches (flash_fetch_sm90.cuh), warpgroups multiply. A warpgroup owns 64 rows of q and
// all columns of their output (flash_rows_sm90.cuh, and one file for each type of values).
// Decisions and measurements are in docs/kernels/attention.md.
#pragma once

#include "cuda/attention/flash_bf16_values_sm90.cuh"
#include "cuda/attention/flash_int8_values_sm90.cuh"

namespace octet::cuda {

template <HopperFlashTile T>
using ValueRows = std::conditional_t<T.int8_values, Int8ValueRows<T>, Bf16ValueRows<T>>;

template <HopperFlashTile T>
__device__ __forceinline__ void run_flash(const HopperFlashParams& params, const FlashMaps& maps) {
  static_assert(T.is_sound(), "this tile breaks a rule of HopperFlashTile::is_sound()");
  extern __shared__ __align__(1024) std::byte shared_bytes[];
  const uint32_t shared = ptx::shared_address(shared_bytes);
  if (threadIdx.x == 0) {
    QueryRing<T>(shared).init();
    KeyRing<T>(shared + T.k_place()).init();
    ValueRing<T>(shared + T.v_place()).init();
    ptx::mbarrier_publish_init();
  }
  if constexpr (T.cluster > 1) {
    ptx::cluster_meet();
  } else {
    __syncthreads();
  }
  // From one lane, so that the compiler knows that it is the same for the whole warp.
  const int group = static_cast<int>(__shfl_sync(~0u, threadIdx.x / 128, 0));
  if (group == T.groups) {
    ptx::give_registers_away<T.fetch_registers()>();
    if (threadIdx.x == 128 * T.groups) fetch_operands<T>(params, maps, shared);
    __syncwarp();
  } else {
    ptx::take_registers<T.registers()>();
    auto* arrived = reinterpret_cast<uint32_t*>(shared_bytes + T.words()) + group;
    ValueRows<T> rows(params, shared, group);
    WorkList<T.cluster> list;
    Work work;
    while (next_work<T>(params, list, work)) {
      const FlashPlace<T> place(params, work.tile);
      rows.run(work, place.head, place.row);
      const bool whole = params.causal || work.k_end - work.k_begin == params.k_steps;
      if (!whole && !rows.merge(work, arrived)) continue;
      if constexpr (T.int8_values) {  // no register could keep it
        const FlashPlace<T> again(params, ptx::read_anew(work.tile));
        rows.store(again.head, again.row);
      } else {
        rows.store(place.head, place.row);
      }
    }
  }
  // No block exits while the other may still arrive at its barriers.
  if constexpr (T.cluster > 1) ptx::cluster_sync();
}

}  // namespace octet::cuda
