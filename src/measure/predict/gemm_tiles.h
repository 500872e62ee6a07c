// How Octet's INT8 GEMM cuts a problem on a card, and how many clocks that takes.
#pragma once

#include "devices/gpu_tiles.h"
#include "measure/predict/model.h"

namespace octet::predict {

struct TileClocks {
  double clocks = 0;      // of the multiprocessors, from the first tile to the last
  double fetched = 0;     // bytes from L2
  double memory = 0;      // bytes from and to memory
  double operations = 0;  // with those past the edges of the problem
};

// Whether the kernels of a row run on the card.
bool is_available(const GpuTile& tile, const Card& card);

// `whole_rounds`: the last round of tiles counts as a full one. At its power limit a card has a
// higher clock in a round that is not full, which makes up for about half of what stands idle.
TileClocks tile_clocks(const GpuTile& tile, bool streams, const Card& card,
                       const Coefficients& coefficients, int64_t m, int64_t n, int64_t k,
                       bool whole_rounds);

}  // namespace octet::predict
