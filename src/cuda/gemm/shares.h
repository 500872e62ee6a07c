// How a problem is cut for a row of the tile table: tiles, workers (see schedule.cuh), the order of
// the tiles, and how long that should take. Pure arithmetic, without a device.
#pragma once

#include "backend/gemm.h"
#include "cuda/device.h"
#include "cuda/gemm/table.h"

namespace octet::cuda {

struct Shares {
  int tiles_m = 0, tiles_n = 0;
  int k_steps = 0;
  int workers = 0;
  int whole_tiles = 0;
  int shared_tiles() const { return tiles_m * tiles_n - whole_tiles; }
};

// `room`: workers that fit on the device at once. Without room or tiles there are no workers.
Shares share_tiles(const GemmCandidate& candidate, const GemmProblem& problem, int64_t room);

// GemmParams::raster_rows.
int raster_rows(const GemmRow& row, const Shares& shares, int64_t k, int64_t l2_bytes);

// Microseconds. Only the order of candidates matters.
double expected_us(const GemmCandidate& candidate, const GemmProblem& problem, const Shares& shares,
                   const DeviceTraits& traits);

}  // namespace octet::cuda
