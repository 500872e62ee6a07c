// The tile table of the CUDA kernels as plain data, in builds without CUDA as well: for estimates
// of GPUs that are not at hand.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace octet {

struct GpuTile {
  std::string name;             // "sm80_128x256x64_s4_w2x4", as in plan files
  std::string_view family;      // sm80: mma.sync, sm90: wgmma
  std::string_view tile_class;  // small, medium, hopper
  int m = 0, n = 0, k = 0;      // of a block, k per stage
  int stages = 0;
  int cluster_m = 1, cluster_n = 1;  // blocks
  int shared_bytes = 0;              // of a block
  int blocks_per_sm = 1;             // that registers leave room for
  int read_bytes = 0;                // of shared memory, per stage and block
  bool is_pingpong = false;          // one warpgroup multiplies during the other's epilogue
  bool can_stream = true;            // tiles can be shared along k

  int cluster() const { return cluster_m * cluster_n; }
};

// All rows, in the table's order.
std::span<const GpuTile> gpu_tiles();

// Shared memory that a block may take on GPUs that get the tiles of a class.
int gpu_tile_class_bytes(std::string_view tile_class);

}  // namespace octet
