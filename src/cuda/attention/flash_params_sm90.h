// The arguments of a Hopper attention kernel.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace octet::cuda {

struct HopperFlashParams {
  std::byte* out;        // BF16, rows at multiples of 16 bytes
  int64_t out_stride;    // in bytes
  const float* q_scale;  // of INT8 scores: [heads][q_scale_stride]
  const float* k_scale;  // [heads of k][k_scale_stride], rows at multiples of 16 bytes
  int64_t q_scale_stride, k_scale_stride;
  int rows, keys;
  int heads;
  int sharing;       // heads of q that read the same one of k and v
  float scale_log2;  // log2(e) / sqrt(head_dim)
  bool causal;

  // The schedule, see work_list.cuh. A step is a block of keys, a tile the rows of a cluster.
  int tiles_per_head;
  int k_steps;
  int whole_tiles;
  float* partials;     // [2 * workers][teams][128 threads' state], of tiles that workers share
  uint32_t* arrivals;  // zeros [tiles - whole_tiles][teams], before and after

  const float* v_scale;  // of INT8 values: [heads of v][v_scale_stride], one for 128 keys
  int v_scale_stride;

  constexpr int tile_count() const { return heads * tiles_per_head; }
};

// Rows of 128 bytes of a matrix as TMA sees them: [boxes of columns][rows][128]. A row of v is a
// key, or a channel for INT8 values.
struct FlashMaps {
  CUtensorMap q, k, v;
};

}  // namespace octet::cuda
