#include "devices/gpu_tiles.h"

#include <vector>

#include "base/never_destroyed.h"
#include "cuda/gemm/tile_name.h"
#include "cuda/gemm/tiles.h"

namespace octet {
namespace {

GpuTile gpu_tile_of(const cuda::Tile& tile, std::string_view tile_class) {
  GpuTile row;
  row.name = cuda::name_of(tile);
  row.family = "sm80";
  row.tile_class = tile_class;
  row.m = tile.m;
  row.n = tile.n;
  row.k = tile.k;
  row.stages = tile.stages;
  row.shared_bytes = tile.shared_bytes();
  row.blocks_per_sm = tile.blocks_per_sm;
  row.read_bytes = tile.warps_m * tile.warps_n * (tile.warp_m() + tile.warp_n()) * tile.k;
  row.can_stream = tile.warps_k == 1;
  return row;
}

GpuTile gpu_tile_of(const cuda::HopperTile& tile, std::string_view tile_class) {
  GpuTile row;
  row.name = cuda::name_of(tile);
  row.family = "sm90";
  row.tile_class = tile_class;
  row.m = tile.m;
  row.n = tile.n;
  row.k = cuda::HopperTile::k;
  row.stages = tile.stages;
  row.cluster_m = tile.cluster_m;
  row.cluster_n = tile.cluster_n;
  row.shared_bytes = tile.shared_bytes();
  row.read_bytes = tile.read_bytes();
  row.is_pingpong = tile.is_pingpong();
  return row;
}

std::vector<GpuTile> all_gpu_tiles() {
  std::vector<GpuTile> rows;
  for (const cuda::HopperTile& tile : cuda::kHopperTiles) {
    rows.push_back(gpu_tile_of(tile, "hopper"));
  }
  for (const cuda::Tile& tile : cuda::kMediumTiles) rows.push_back(gpu_tile_of(tile, "medium"));
  for (const cuda::Tile& tile : cuda::kSmallTiles) rows.push_back(gpu_tile_of(tile, "small"));
  return rows;
}

}  // namespace

std::span<const GpuTile> gpu_tiles() {
  static const auto& rows = never_destroyed<std::vector<GpuTile>>(all_gpu_tiles());
  return rows;
}

int gpu_tile_class_bytes(std::string_view tile_class) {
  using cuda::TileClass;
  if (tile_class == "hopper") return cuda::shared_limit(TileClass::hopper);
  return cuda::shared_limit(tile_class == "medium" ? TileClass::medium : TileClass::small);
}

}  // namespace octet
