// A row of the tile table, and everything derived from it.
#pragma once

#include <cstdint>

namespace octet::cuda {

// A block computes m x n outputs, k bytes of both operands per pipeline stage. Its warps are
// arranged warps_m x warps_n x warps_k; each computes warp_m() x warp_n() outputs in registers,
// from its share of each stage's k. Several along k are for few tokens: there tiles must be small
// to be numerous, and their accumulators are added up in shared memory at the end.
struct Tile {
  int m, n, k;
  int stages;
  int warps_m, warps_n, warps_k;
  int blocks_per_sm;  // that the registers must leave room for

  constexpr int threads() const { return 32 * warps_m * warps_n * warps_k; }
  constexpr int warp_m() const { return m / warps_m; }
  constexpr int warp_n() const { return n / warps_n; }
  constexpr int stage_bytes() const { return (m + n) * k; }
  constexpr int slice_bytes() const { return (warps_k - 1) * m * n * 4; }
  constexpr int shared_bytes() const { return stages * stage_bytes() + slice_bytes(); }
  constexpr bool operator==(const Tile&) const = default;

  // What the kernel relies on. Power-of-two threads keep the swizzle of a thread's copies constant.
  constexpr bool is_sound() const {
    return (k == 64 || k == 128) && stages >= 3 && m % (16 * warps_m) == 0 &&
           n % (32 * warps_n) == 0 && k % (32 * warps_k) == 0 &&
           (threads() & (threads() - 1)) == 0 && threads() <= 512;
  }
};

}  // namespace octet::cuda
