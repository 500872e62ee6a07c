// The kernels that this build has, under the names by which plans, logs and overrides know them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backend/fusion.h"
#include "cuda/gemm/tiles.h"

namespace octet::cuda {

struct GemmRow {
  Tile tile;
  TileClass tile_class;
  std::string name;        // "sm80_128x256x64_s4_w2x4"
  const void* kernels[3];  // by Fusion
};

// A row and how its tiles are given to blocks: whole, or with those of the last wave shared along k
// ("stream-k", name ends in _streamk).
struct GemmCandidate {
  const GemmRow* row = nullptr;
  bool streams = false;
  std::string name;
};

std::string name_of(const Tile& tile);
std::span<const GemmRow> gemm_rows();
std::span<const GemmCandidate> gemm_candidates();

// Why this build cannot run on a device, when it was made for others; empty when it can.
std::string why_no_kernels(int device);

// Throws Error with all names when there is none.
const GemmCandidate& find_candidate(const std::string& name);

}  // namespace octet::cuda
