#include "measure/predict/model.h"

#include <algorithm>
#include <cmath>

#include "measure/predict/gemm_tiles.h"

namespace octet::predict {
namespace {

constexpr double kLaunchUs = 3;
constexpr double kFetchPj = 10;        // per byte from L2 to a multiprocessor: an estimate
constexpr double kMemoryShare = 0.85;  // of the bandwidth that a kernel reaches: a copy, measured
constexpr double kNf4BytesPerWeight = 0.5625;  // four bits, and an f32 scale for each 64 weights

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
