#include "measure/predict/gemm_tiles.h"

#include <algorithm>
#include <cmath>

namespace octet::predict {
namespace {

constexpr double kSharedBytesPerClock = 128;  // of a multiprocessor: 32 banks of 4 bytes
constexpr double kEpilogueClocks = 1500;
constexpr double kStreamClocks = 6000;  // partial sums to memory and back, with their latencies
constexpr int64_t kFewestSharedSteps = 2;

double times_up(double a, double b) { return std::ceil(a / b); }

// Blocks that a multiprocessor holds at once.
int residents(const GpuTile& tile, const Card& card) {
  constexpr int kReserved = 1024;  // bytes of shared memory that CUDA takes per block
  return std::clamp(card.shared_bytes / (tile.shared_bytes + kReserved), 1, tile.blocks_per_sm);
}

// Rows of tiles whose part of `a` stays in half of L2 are walked together, and w is read once for
// each such group: cuda/gemm/shares.cpp.
double groups_of_rows(const GpuTile& tile, const Card& card, double tiles_m, double workers,
                      int64_t k) {
  const double row_bytes = double(tile.m) * tile.cluster_m * double(k);
  const double fitting = std::floor(card.l2_bytes / 2 / row_bytes);
  const double square =
      std::floor(std::sqrt(workers * tile.n * tile.cluster_n / (tile.m * tile.cluster_m)));
  return std::max(1.0, times_up(tiles_m, std::max({fitting, square, 1.0})));
}

}  // namespace

bool is_available(const GpuTile& tile, const Card& card) {
  if (tile.family == "sm90") return card.has_wgmma();
  return gpu_tile_class_bytes(tile.tile_class) <= card.shared_block_bytes;
}

TileClocks tile_clocks(const GpuTile& tile, bool streams, const Card& card,
                       const Coefficients& coefficients, int64_t m, int64_t n, int64_t k,
                       bool whole_rounds) {
  const bool wgmma = tile.family == "sm90";
  const double tiles_m = times_up(double(m), tile.m * tile.cluster_m);
  const double tiles_n = times_up(double(n), tile.n * tile.cluster_n);
  const double tiles = tiles_m * tiles_n;
  const double k_steps = std::max(1.0, times_up(double(k), tile.k));
  const double resident = residents(tile, card);
  const double room = std::max(1.0, std::floor(card.multiprocessors * resident / tile.cluster()));

  double workers = std::min(tiles, room);
  double whole = tiles;
  if (streams) {
    whole = std::floor(tiles / room) * room;
    workers = room;
    if (whole == 0) workers = std::min(room, tiles * times_up(k_steps, kFewestSharedSteps));
  }
  const double sharing = std::max(1.0, std::ceil(workers * tile.cluster() / card.multiprocessors));

  const double rate = wgmma ? card.int8 : card.int8_mma;
  const double unhidden = wgmma ? coefficients.unhidden_wgmma : coefficients.unhidden_mma;
  const double multiply = 2.0 * tile.m * tile.n * tile.k / rate;
  const double read = tile.read_bytes / kSharedBytesPerClock;
  const double rows_a = std::min(double(tile.m), double(m)) / tile.cluster_n;
  const double step_bytes = (rows_a + double(tile.n) / tile.cluster_m) * tile.k;
  const double fetch = step_bytes * card.multiprocessors / card.l2_bytes_per_clock;
  const double step = std::max({multiply + unhidden * read, read, fetch}) * sharing;

  const double exact = whole / workers;
  const double rounds = whole_rounds ? std::ceil(exact) : (exact + std::ceil(exact)) / 2;
  // In turns, one epilogue after another is hidden behind the products of the other warpgroup.
  const double epilogues = tile.is_pingpong ? std::min(rounds, 1.0) : rounds;
  TileClocks result;
  result.clocks = rounds * k_steps * step + epilogues * kEpilogueClocks * sharing;
  if (streams) {
    result.clocks += std::ceil((tiles - whole) * k_steps / workers) * step + kStreamClocks +
                     tile.m * tile.n * (wgmma ? 7.0 : 4.0) / 16;
  }
  const double blocks = tiles * tile.cluster();
  result.fetched = blocks * k_steps * step_bytes;
  result.operations = 2.0 * blocks * tile.m * tile.n * k_steps * tile.k;
  const double weights = double(n) * double(k);
  result.memory = double(m) * double(k) + 2.0 * double(m) * double(n) +
                  weights * groups_of_rows(tile, card, tiles_m, workers, k);
  return result;
}

}  // namespace octet::predict
