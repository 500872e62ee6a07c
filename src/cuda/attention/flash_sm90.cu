#include <array>
#include <utility>

#include "cuda/attention/flash_sm90.cuh"
#include "cuda/attention/flash_table.h"

namespace octet::cuda {
namespace {

// Tiles are named by their numbers here because nvcc 13 cannot pass a struct of a namespace to a
// __global__ template; the number is not used outside this file. The 1 fixes the registers of a
// block, which can then be redistributed in it.
template <int kTile>
__global__ void __launch_bounds__(kHopperFlashTiles[kTile].threads(), 1)
    flash_attention_sm90(const __grid_constant__ HopperFlashParams params,
                         const __grid_constant__ FlashMaps maps) {
  run_flash<kHopperFlashTiles[kTile]>(params, maps);
}

template <int... kTile>
auto list_kernels(std::integer_sequence<int, kTile...>) {
  return std::array{reinterpret_cast<const void*>(&flash_attention_sm90<kTile>)...};
}

}  // namespace

std::span<const void* const> hopper_flash_code() {
  static const auto code =
      list_kernels(std::make_integer_sequence<int, std::size(kHopperFlashTiles)>());
  return code;
}

}  // namespace octet::cuda
