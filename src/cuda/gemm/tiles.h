// THE table of tiles, edited by hand; nothing else lists shapes. A row's name, made of its fields
// (sm80_128x256x64_s4_w2x4), is its identity in plan files, logs, tests and overrides.
//
// Family sm80, mma.sync: two classes by the shared memory that a block may take, each built for the
// architectures that have it (cmake/cuda.cmake) and tested against its limit:
//   small   99 KB   sm_86, sm_89, sm_120, and all others
//   medium 163 KB   sm_80, sm_87, sm_90, and as PTX whatever is newer than all of these
// Stages of 128 bytes of k copy whole lines; where shared memory is short, 64 leave more stages.
// Family sm90, wgmma: one class,
//   hopper 227 KB   only sm_90
#pragma once

#include "cuda/gemm/tile.h"
#include "cuda/gemm/tile_sm90.h"

namespace octet::cuda {

enum class TileClass { small, medium, hopper };
// How a weight is stored: see pack.h.
enum class WeightRows { packed, plain };

constexpr int shared_limit(TileClass tile_class) {
  switch (tile_class) {
    case TileClass::small: return 99 * 1024;
    case TileClass::medium: return 163 * 1024;
    case TileClass::hopper: return 227 * 1024;
  }
  return 0;
}

// clang-format off
inline constexpr Tile kSmallTiles[] = {
    // m    n    k  stages warps m, n, k  blocks per multiprocessor
    {128, 256,  64, 4, 2, 4, 1, 1},  // large m, wide n
    {128, 128, 128, 3, 2, 2, 1, 1},  // two blocks where shared memory allows it, better last waves
    { 64, 128, 128, 4, 1, 4, 1, 1},  // some 64 tokens
    { 64,  64, 128, 3, 2, 2, 1, 3},  // the same, n too small to fill the device
    { 64,  64, 128, 6, 1, 2, 1, 2},  // the same with more stages in fewer blocks
    { 32, 128, 128, 4, 1, 4, 1, 2},  // short texts
    { 16, 128, 128, 3, 1, 4, 1, 4},  // a few tokens
    { 16,  64, 128, 6, 1, 2, 1, 3},  // a few tokens, k short
    { 16,  64, 128, 8, 1, 2, 2, 2},  // a few tokens, k long
    { 16,  64, 128, 4, 1, 2, 2, 4},  // the same with fewer stages in more blocks
};
inline constexpr Tile kMediumTiles[] = {
    {128, 256, 128, 3, 2, 4, 1, 1},  // large m and n on sm_80
};
inline constexpr HopperTile kHopperTiles[] = {
    // m    n stages  warpgroups      m, n  cluster m, n  stagger
    {256, 192,  4, Sharing::cooperative, 2, 1, 1, 2, 2},  // long k: the fewest bytes per operation
    {128, 256,  4, Sharing::cooperative, 2, 1, 2, 1, 2},  // other last waves; a head's 256 columns
    {128, 256,  4, Sharing::cooperative, 2, 1, 1, 2, 2},  // the same with fewer rows past m
    {256, 128,  4, Sharing::cooperative, 2, 1, 1, 2, 2},  // n not a multiple of the others'
    {128, 192,  5, Sharing::pingpong,    2, 1, 2, 1, 0},  // short k: the epilogue is hidden
    {128, 192,  5, Sharing::pingpong,    2, 1, 1, 2, 0},  // the same with fewer rows past m
    {128, 128,  6, Sharing::pingpong,    2, 1, 2, 1, 0},  // some hundred tokens
    { 64, 256,  5, Sharing::cooperative, 1, 2, 1, 1, 0},  // texts, large n
    { 64, 128,  8, Sharing::cooperative, 1, 2, 1, 1, 0},  // texts
    { 64,  64, 12, Sharing::cooperative, 1, 1, 1, 1, 0},  // texts, n too small to fill the device
};
// clang-format on

template <TileClass C>
constexpr const auto& tiles_of() {
  if constexpr (C == TileClass::small) {
    return kSmallTiles;
  } else if constexpr (C == TileClass::medium) {
    return kMediumTiles;
  } else {
    return kHopperTiles;
  }
}

}  // namespace octet::cuda
