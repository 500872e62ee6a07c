// The arguments of a GEMM kernel: operands, outputs and which block does which work.
#pragma once

#include <cstdint>

namespace octet::cuda {

enum class OutType : int { i32, f32, bf16, f16 };

struct GemmParams {
  const int8_t* a;         // [m, k], rows a_stride bytes apart, 16-byte aligned
  const int8_t* w;         // see pack.h
  const float* row_scale;  // [m]
  const float* col_scale;  // [n], 16-byte aligned, readable up to the next multiple of eight
  const float* bias;       // likewise, or null
  // [m, n] or, for swiglu, [m, n / 2]; rows are out_stride elements apart and begin at multiples of
  // 16 bytes. Outputs are written in groups of eight columns of w, the last one too.
  void* out;
  int64_t a_stride, out_stride;
  int64_t w_stride;  // bytes from one row to the next, of a weight in plain rows; else 0
  int m, n, k;
  int packed_n;  // rows of w as packed
  OutType out_type;
  bool out_streams;  // larger than the L2, so it bypasses it

  // The schedule, see schedule.cuh and work_list.cuh.
  int tiles_m, tiles_n;
  int raster_rows;     // of tiles, walked column by column
  int k_steps;         // per tile
  int whole_tiles;     // the first tiles, each computed by one worker
  int32_t* partials;   // [2 * workers][tile's outputs], of tiles that workers share
  uint32_t* arrivals;  // zeros [tiles - whole_tiles][teams], before and after

  constexpr int tile_count() const { return tiles_m * tiles_n; }
};

}  // namespace octet::cuda
