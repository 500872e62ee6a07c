#include "measure/predict/model.h"

#include <algorithm>
#include <cmath>

namespace octet::predict {
namespace {

constexpr double kSharedBytesPerClock = 128;  // of a multiprocessor: 32 banks of 4 bytes
constexpr double kEpilogueClocks = 1500;
constexpr double kStreamClocks = 6000;  // partial sums to memory and back, with their latencies
constexpr int64_t kFewestSharedSteps = 2;

constexpr double kLaunchUs = 3;
constexpr double kFetchPj = 10;        // per byte from L2 to a multiprocessor: an estimate
constexpr double kMemoryShare = 0.85;  // of the bandwidth that a kernel reaches: a copy, measured
constexpr double kNf4BytesPerWeight = 0.5625;  // four bits, and an f32 scale for each 64 weights

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

// Time at the clock that power leaves, for work of which `clocks` follow the clock.
LinearTime at_its_clock(const Card& card, const Coefficients& coefficients, Load load,
                        double clocks, double joules, double memory_bytes) {
  const double boost_us = clocks / (card.boost_ghz * 1e3);
  const double share = clock_share(card, coefficients, load, joules, boost_us * 1e-6);
  LinearTime time;
  time.clock_ghz = card.boost_ghz * share;
  const double memory_us = memory_bytes / (card.memory_gbs * kMemoryShare) * 1e-3;
  time.us = std::max(boost_us / share, memory_us) + kLaunchUs;
  return time;
}

LinearTime tile_time(const GpuTile& tile, bool streams, const Card& card,
                     const Coefficients& coefficients, Load load, int64_t m, int64_t n, int64_t k,
                     bool whole_rounds) {
  const TileClocks work = tile_clocks(tile, streams, card, coefficients, m, n, k, whole_rounds);
  const double picojoules =
      card.energy * (work.operations * coefficients.int8_pj + work.fetched * kFetchPj) +
      card.memory_pj * work.memory;
  return at_its_clock(card, coefficients, load, work.clocks, picojoules * 1e-12, work.memory);
}

LinearTime octet_gemm(const Card& card, const Coefficients& coefficients, bool mma_alone, Load load,
                      int64_t m, int64_t n, int64_t k) {
  LinearTime best;
  if (card.int8_mma == 0) return best;
  const GpuTile* best_tile = nullptr;
  bool best_streams = false;
  for (const GpuTile& tile : gpu_tiles()) {
    if (!is_available(tile, card) || (mma_alone && tile.tile_class != "small")) continue;
    for (const bool streams : {false, true}) {
      if (streams && !tile.can_stream) continue;
      LinearTime time = tile_time(tile, streams, card, coefficients, load, m, n, k, true);
      if (load == Load::steady && time.clock_ghz < card.boost_ghz) {
        time = tile_time(tile, streams, card, coefficients, load, m, n, k, false);
      }
      if (best_tile && time.us >= best.us) continue;
      best = time;
      best_tile = &tile;
      best_streams = streams;
    }
  }
  if (best_tile) best.tile = best_tile->name + (best_streams ? "_streamk" : "");
  return best;
}

// cuBLAS: tiles of 128 x 256, two blocks that share their rows, and rounds that are balanced.
LinearTime library_gemm(const Card& card, const Coefficients& coefficients, bool fp8, Load load,
                        int64_t m, int64_t n, int64_t k) {
  constexpr double kTileM = 128, kTileN = 256;
  const double rate = fp8 ? card.fp8 : card.bf16;
  const double share = fp8 ? coefficients.fp8_share : coefficients.bf16_share;
  const double bytes = fp8 ? 1 : 2;
  const double tiles = std::ceil(double(m) / kTileM) * std::ceil(double(n) / kTileN);
  const double exact = tiles / card.multiprocessors;
  const double rounds = std::max(1.0, (exact + std::ceil(exact)) / 2);
  const double operations = 2 * tiles * kTileM * kTileN * double(k);
  const double clocks = rounds * 2 * kTileM * kTileN * double(k) / (rate * share);
  const double fetched = tiles * (kTileM + kTileN / 2) * double(k) * bytes;
  const double memory = bytes * double(k) * double(m + n) + 2.0 * double(m) * double(n);
  const double joules =
      (operations * (fp8 ? coefficients.fp8_pj : coefficients.bf16_pj) + fetched * kFetchPj) *
          card.energy * 1e-12 +
      memory * card.memory_pj * 1e-12;
  return at_its_clock(card, coefficients, load, clocks, joules, memory);
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

double clock_share(const Card& card, const Coefficients& coefficients, Load load, double joules,
                   double seconds) {
  if (seconds <= 0) return 1;
  const double limit = load == Load::cold ? coefficients.cold_power : 1.0;
  const double allowed = (limit - kConstantPower) * card.watts;
  return std::min(1.0, std::cbrt(allowed / (joules / seconds)));
}

double row_pass_us(const Card& card, const Coefficients& coefficients, double bytes) {
  return bytes / (card.memory_gbs * coefficients.row_share) * 1e-3 + coefficients.row_launch_us;
}

LinearTime product_time(const Card& card, const Coefficients& coefficients, Path path, Load load,
                        int64_t m, int64_t n, int64_t k) {
  const double weights = double(n) * double(k);
  const double inputs = double(m) * double(k);
  const auto pass = [&](double bytes) { return row_pass_us(card, coefficients, bytes); };
  switch (path) {
    case Path::int8: return octet_gemm(card, coefficients, false, load, m, n, k);
    case Path::int8_mma: return octet_gemm(card, coefficients, true, load, m, n, k);
    case Path::fp8:
      if (card.fp8 == 0) return {};
      return library_gemm(card, coefficients, true, load, m, n, k);
    default: break;
  }
  LinearTime time = library_gemm(card, coefficients, false, load, m, n, k);
  if (path == Path::nf4) time.us += pass(weights * (kNf4BytesPerWeight + 2));
  if (path == Path::fake) time.us += pass(3 * inputs) + pass(3 * inputs) + pass(3 * weights);
  return time;
}

LinearTime linear_time(const Card& card, const Coefficients& coefficients, Path path, Load load,
                       int64_t m, int64_t n, int64_t k) {
  LinearTime time = product_time(card, coefficients, path, load, m, n, k);
  const bool quantizes = path == Path::int8 || path == Path::int8_mma || path == Path::fp8;
  if (quantizes && time.us > 0) {
    time.us += row_pass_us(card, coefficients, 3 * double(m) * double(k));
  }
  return time;
}

double attention_us(const Card& card, const Coefficients& coefficients, Attention kind, Load load,
                    int64_t tokens, int64_t heads, int64_t head_size) {
  const double scores = double(heads) * double(tokens) * double(tokens);
  const double product = 2 * double(head_size);  // operations per score, of each of the two
  const bool int8 = kind == Attention::int8_scores;
  const bool fast = (card.has_wgmma() || card.has_tcgen05()) && kind != Attention::bf16_mma;
  double clocks = 0;  // per score and multiprocessor
  if (fast) {
    const double share = int8 ? coefficients.attention_int8_share : coefficients.attention_share;
    clocks = product * (1 / (int8 ? card.int8 : card.bf16) + 1 / card.bf16) / share;
  } else {
    clocks = product * (1 / (int8 ? card.int8_mma : card.bf16_mma) + 1 / card.bf16_mma) +
             coefficients.softmax_clocks;
  }
  const double joules =
      scores * product * card.energy * 1e-12 *
      ((int8 ? coefficients.int8_pj : coefficients.bf16_pj) + coefficients.bf16_pj);
  const double memory = 2.0 * 4 * double(tokens) * double(heads) * double(head_size);
  return at_its_clock(card, coefficients, load, scores * clocks / card.multiprocessors, joules,
                      memory)
      .us;
}

}  // namespace octet::predict
