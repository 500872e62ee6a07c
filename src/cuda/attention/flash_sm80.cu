#include <array>
#include <utility>

#include "cuda/attention/flash_sm80.cuh"
#include "cuda/attention/flash_table.h"

namespace octet::cuda {
namespace {

// A tile is named by its number here because nvcc 13 cannot pass a struct of a namespace to a
// __global__ template; the number is not used outside this file.
template <int kTile>
__global__ void __launch_bounds__(kFlashTiles[kTile].threads(), kFlashTiles[kTile].blocks)
    flash_attention(const __grid_constant__ FlashParams params) {
  run_flash<kFlashTiles[kTile]>(params);
}

template <int... kTile>
auto list_kernels(std::integer_sequence<int, kTile...>) {
  return std::array{reinterpret_cast<const void*>(&flash_attention<kTile>)...};
}

}  // namespace

std::span<const void* const> flash_code() {
  static const auto code = list_kernels(std::make_integer_sequence<int, std::size(kFlashTiles)>());
  return code;
}

}  // namespace octet::cuda
