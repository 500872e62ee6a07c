// The tile configuration of all AMX kernels: eight tiles of 16 rows of 64 bytes.
//
// Internal to the translation unit that includes it: see vec_scalar.h for why.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace {

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

// Constant memory, not a local: gcc's _tile_loadconfig declares only its first 8 bytes as read, and
// the stores to the rest of a local would be dropped as dead.
constexpr TileConfig kTileConfig;

// The configuration belongs to the thread until it is released.
inline void load_tile_config() { _tile_loadconfig(&kTileConfig); }

// Without this the operating system would save and restore 8 KB of tiles at each thread switch.
inline void release_tiles() { _tile_release(); }

}  // namespace
