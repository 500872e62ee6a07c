#include <array>
#include <utility>

#include "cuda/attention/flash.h"
#include "cuda/attention/flash_sm80.cuh"

namespace octet::cuda {
namespace {

// With heads of 256, for the 227 KB of shared memory that Hopper has, the 163 KB of A100, and the
// 99 KB of all others.
// clang-format off
constexpr FlashTile kTiles[] = {
    // head rows keys stages
    { 64, 128, 64, 4},
    {128, 128, 64, 4},
    {256, 128, 64, 4},
    {256, 128, 64, 3},
    {256, 128, 32, 4},
    {256,  64, 32, 4},
    {256,  64, 64, 2},
};
// clang-format on

// A tile is named by its number here because nvcc 13 cannot pass a struct of a namespace to a
// __global__ template; the number goes no further than this file.
template <int kTile>
__global__ void __launch_bounds__(kTiles[kTile].threads(), kTiles[kTile].head_dim == 64 ? 2 : 1)
    flash_attention(const __grid_constant__ FlashParams params) {
  run_flash<kTiles[kTile]>(params);
}

template <int... kTile>
auto list_kernels(std::integer_sequence<int, kTile...>) {
  return std::array{
      FlashKernel{kTiles[kTile], reinterpret_cast<const void*>(&flash_attention<kTile>)}...};
}

}  // namespace

std::span<const FlashKernel> flash_kernels() {
  static const auto kernels = list_kernels(std::make_integer_sequence<int, std::size(kTiles)>());
  return kernels;
}

}  // namespace octet::cuda
