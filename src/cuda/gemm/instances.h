// The compiled kernels of the tile table, one translation unit per class, fusion and layout.
#pragma once

#include <span>

#include "backend/fusion.h"
#include "cuda/gemm/tiles.h"

namespace octet::cuda {

// The __global__ functions of the rows of a class, in the table's order.
template <TileClass C, Fusion F, WeightRows R>
std::span<const void* const> gemm_kernels();

}  // namespace octet::cuda
