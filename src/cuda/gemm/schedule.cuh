// Which block computes which tile of a GEMM: cuda/work_list.cuh, with integer sums, which do not
// depend on the order, so that the result is the same bits however tiles are shared (share.cuh).
//
// Tiles are numbered so that those that run at the same time form a compact rectangle:
// `raster_rows` rows of tiles at a time, column by column, which keeps both operands' panels in
// L2.
#pragma once

#include "cuda/gemm/params.h"
#include "cuda/work_list.cuh"

namespace octet::cuda {

struct TilePlace {
  int row, column;  // in tiles
};

__device__ __forceinline__ TilePlace place_of(const GemmParams& params, int tile) {
  const int per_group = params.raster_rows * params.tiles_n;
  const int first = tile / per_group * params.raster_rows;
  const int rows = min(params.raster_rows, params.tiles_m - first);
  const int index = tile % per_group;
  return {first + index % rows, index / rows};
}

}  // namespace octet::cuda
