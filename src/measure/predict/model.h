// The analytic model: how long one operation of a diffusion transformer takes on a card.
//
// A GEMM goes through the tiles of Octet's own table as its scheduler would: tiles, workers, rounds
// of tiles, shares along k. A step along k takes as long as multiplying, plus the part of reading
// shared memory that the kernel does not overlap, or as fetching from L2 where that is longer.
// cuBLAS has one tile and a share of the peak. Memory is a second roof.
//
// Power: at its limit a card lowers its clock. Power other than the constant share goes with the
// third power of the clock (voltage follows it), so a kernel that would draw P at full clock runs
// at the cube root of what it may draw over P.
#pragma once

#include <cstdint>
#include <string>

#include "devices/gpu_tiles.h"
#include "measure/predict/card.h"

namespace octet::predict {

enum class Path { int8, int8_mma, bf16, fp8, nf4, fake };

enum class Load { cold, steady };  // one call after a pause; call after call

// What is fitted to the measured card. Nothing here is of a single shape.
struct Coefficients {
  double unhidden_wgmma = 0.4;  // of reading shared memory, in wgmma kernels
  double unhidden_mma = 0.5;    // in mma.sync kernels
  double bf16_share = 0.8;      // of the peak, that cuBLAS reaches within a tile
  double fp8_share = 0.8;
  double int8_pj = 0.3, bf16_pj = 0.7, fp8_pj = 0.35;  // per operation at full clock
  double cold_power = 1.5;                             // of the limit, that a single call may draw
  double attention_share = 0.8;  // of the peak, in kernels with wgmma or tcgen05
  double attention_int8_share = 0.7;
  double softmax_clocks = 0.4;  // per score, that mma.sync attention adds to its products
  double row_share = 0.75;      // of the memory's bandwidth, in passes over rows
  double row_launch_us = 4;
};

struct LinearTime {
  double us = 0;
  double clock_ghz = 0;
  std::string tile;  // of Octet's table; empty for cuBLAS
};

// The product alone; nf4 and fake with their dequantization, fake with its quantization as well.
LinearTime product_time(const Card& card, const Coefficients& coefficients, Path path, Load load,
                        int64_t m, int64_t n, int64_t k);

// The whole linear from bf16 to bf16, so with the quantization of the activations.
LinearTime linear_time(const Card& card, const Coefficients& coefficients, Path path, Load load,
                       int64_t m, int64_t n, int64_t k);

// How Octet's INT8 GEMM cuts a problem, and how many clocks that takes.
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

// One pass over rows that moves this many bytes.
double row_pass_us(const Card& card, const Coefficients& coefficients, double bytes);

// The clock that a card's power limit leaves, as a share of its boost clock, at most 1, for work of
// `joules` that takes `seconds` at that clock.
double clock_share(const Card& card, const Coefficients& coefficients, Load load, double joules,
                   double seconds);
// Of the limit: what a card draws that does not follow its clock. An estimate.
inline constexpr double kConstantPower = 0.2;

enum class Attention { bf16, int8_scores, bf16_mma };

double attention_us(const Card& card, const Coefficients& coefficients, Attention kind, Load load,
                    int64_t tokens, int64_t heads, int64_t head_size);

}  // namespace octet::predict
