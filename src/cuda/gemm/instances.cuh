// Turns the tile table into kernels. (A row is named by its number here because nvcc 13 cannot pass
// a struct of a namespace to a __global__ template; the number is not used outside this file.)
#pragma once

#include <array>
#include <utility>

#include "cuda/gemm/instances.h"
#include "cuda/gemm/kernel_sm80.cuh"
#include "cuda/gemm/kernel_sm90.cuh"

namespace octet::cuda {

template <TileClass C, int kRow, Fusion F, WeightRows R>
__global__ void __launch_bounds__(tiles_of<C>()[kRow].threads(), tiles_of<C>()[kRow].blocks_per_sm)
    gemm_sm80(const __grid_constant__ GemmParams params) {
  run_block<tiles_of<C>()[kRow], F, R>(params);
}

// With the 1, the registers of a block are known, and can be redistributed in it.
template <int kRow, Fusion F>
__global__ void __launch_bounds__(kHopperTiles[kRow].threads(), 1)
    gemm_sm90(const __grid_constant__ GemmParams params, const __grid_constant__ OperandMaps maps) {
  run_block<kHopperTiles[kRow], F>(params, maps);
}

// A build whose kernels nobody runs compiles only every OCTET_TILE_STRIDEth tile of a class
// (cmake/cuda.cmake); the others are null there.
template <TileClass C, Fusion F, WeightRows R, int kRow>
const void* kernel_of() {
  if constexpr (kRow % OCTET_TILE_STRIDE != 0) {
    return nullptr;
  } else if constexpr (C == TileClass::hopper) {
    return reinterpret_cast<const void*>(&gemm_sm90<kRow, F>);
  } else {
    return reinterpret_cast<const void*>(&gemm_sm80<C, kRow, F, R>);
  }
}

template <TileClass C, Fusion F, WeightRows R, int... kRows>
auto list_kernels(std::integer_sequence<int, kRows...>) {
  return std::array<const void*, sizeof...(kRows)>{kernel_of<C, F, R, kRows>()...};
}

template <TileClass C, Fusion F, WeightRows R>
std::span<const void* const> gemm_kernels() {
  static const auto kernels =
      list_kernels<C, F, R>(std::make_integer_sequence<int, std::size(tiles_of<C>())>());
  return kernels;
}

}  // namespace octet::cuda
