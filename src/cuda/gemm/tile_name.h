// The names of tiles, for the kernels' table and for builds without CUDA that only read it.
#pragma once

#include <fmt/format.h>

#include <string>

#include "cuda/gemm/tile.h"
#include "cuda/gemm/tile_sm90.h"

namespace octet::cuda {

inline std::string name_of(const Tile& tile) {
  std::string name = fmt::format("sm80_{}x{}x{}_s{}_w{}x{}", tile.m, tile.n, tile.k, tile.stages,
                                 tile.warps_m, tile.warps_n);
  if (tile.warps_k > 1) name += fmt::format("x{}", tile.warps_k);
  return name;
}

inline std::string name_of(const HopperTile& tile) {
  std::string name = fmt::format("sm90_{}x{}x{}_s{}", tile.m, tile.n, HopperTile::k, tile.stages);
  name += tile.is_pingpong() ? fmt::format("_pingpong{}", tile.groups())
                             : fmt::format("_g{}x{}", tile.groups_m, tile.groups_n);
  if (tile.cluster() > 1) name += fmt::format("_c{}x{}", tile.cluster_m, tile.cluster_n);
  if (tile.stagger > 0) name += fmt::format("_y{}", tile.stagger);
  return name;
}

}  // namespace octet::cuda
