// The kernels of this build, under the names used by plans, logs and overrides.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backend/fusion.h"
#include "cuda/gemm/tile_name.h"
#include "cuda/gemm/tiles.h"

namespace octet::cuda {

// What is needed to run a row of the tile table.
struct GemmRow {
  explicit GemmRow(const Tile& tile);
  explicit GemmRow(const HopperTile& tile);

  std::string name;  // "sm80_128x256x64_s4_w2x4"
  bool hopper = false;
  int m, n, k;  // of a block, k per stage
  int stages;
  int cluster_m = 1, cluster_n = 1;  // blocks
  int threads, shared_bytes;         // of a block
  int teams = 1;                     // see share.cuh
  bool can_stream = true;            // tiles can be shared along k
  int read_bytes;                    // of shared memory, per stage and block
  // By Fusion; family sm90 reads packed and plain weights with the same kernel.
  const void* packed_kernels[kFusionCount] = {};
  const void* plain_kernels[kFusionCount] = {};

  const void* kernel(Fusion fusion, WeightRows rows) const {
    const auto& kernels = rows == WeightRows::packed ? packed_kernels : plain_kernels;
    return kernels[static_cast<size_t>(fusion)];
  }
  int cluster() const { return cluster_m * cluster_n; }
  int worker_m() const { return m * cluster_m; }
  int worker_n() const { return n * cluster_n; }
};

// A row and how its tiles are given to blocks: whole, or with those of the last wave shared along k
// ("stream-k", name ends in _streamk).
struct GemmCandidate {
  const GemmRow* row = nullptr;
  bool streams = false;
  std::string name;
};

std::span<const GemmRow> gemm_rows();
std::span<const GemmCandidate> gemm_candidates();

// Why this build, made for other GPUs, cannot run on a device; empty if it can.
std::string why_no_kernels(int device);

// Throws Error with all names if there is none.
const GemmCandidate& find_candidate(const std::string& name);

}  // namespace octet::cuda
