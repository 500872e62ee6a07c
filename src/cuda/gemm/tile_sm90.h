// A row of the Hopper table, and everything derived from it.
#pragma once

namespace octet::cuda {

// Who computes a block's tiles. Cooperative: all warpgroups share each tile. Ping-pong: each has
// tiles of its own, and one multiplies while another runs its epilogue.
enum class Sharing { cooperative, pingpong };

inline constexpr int kGroupWarps = 4;  // of a warpgroup
inline constexpr int kGroupThreads = 32 * kGroupWarps;

// A block computes m x n outputs, 128 bytes of k of both operands per pipeline stage. Its
// warpgroups are arranged groups_m x groups_n (ping-pong: only their number); one more fetches.
// cluster_m x cluster_n blocks fetch together: those side by side share rows of a, those below each
// other rows of w.
struct HopperTile {
  int m, n;
  int stages;
  Sharing sharing;
  int groups_m, groups_n;
  int cluster_m, cluster_n;
  // The last stages of a tile through which the first warpgroup goes before the second begins them,
  // so that their epilogues do not coincide.
  int stagger;

  static constexpr int k = 128;
  static constexpr int kGroupWordBytes = 12;  // of shared memory, per warpgroup
  constexpr bool is_pingpong() const { return sharing == Sharing::pingpong; }
  constexpr int groups() const { return groups_m * groups_n; }
  constexpr int threads() const { return kGroupThreads * (groups() + 1); }
  constexpr int group_m() const { return is_pingpong() ? m : m / groups_m; }
  constexpr int group_n() const { return is_pingpong() ? n : n / groups_n; }
  constexpr int cluster() const { return cluster_m * cluster_n; }
  constexpr int teams() const {
    return cluster() * (is_pingpong() ? 1 : groups());
  }  // see share.cuh
  constexpr int a_bytes() const { return m * k; }
  constexpr int stage_bytes() const { return (m + n) * k; }
  // Bytes of shared memory that the multiplications of a stage read.
  constexpr int read_bytes() const { return m * n / (64 * group_n()) * (64 + group_n()) * k; }
  // Shared memory: stages and their barriers, scales of columns and theirs, words of warpgroups.
  // Warpgroups with tiles of their own have scales of their own.
  constexpr int scale_place() const { return stages * (stage_bytes() + 16); }
  constexpr int scale_slots() const { return is_pingpong() ? groups() : 1; }
  constexpr int scale_bytes() const { return n * 4; }
  constexpr int words_place() const { return scale_place() + scale_slots() * (scale_bytes() + 16); }
  constexpr int shared_bytes() const { return words_place() + kGroupWordBytes * groups(); }
  constexpr bool operator==(const HopperTile&) const = default;

  // What the kernel relies on: rows of a wgmma and the widths of ptx/wgmma_s8.cuh, boxes of TMA,
  // whole groups of the swizzle, and of the rows that pack.h permutes. A warpgroup that waits for
  // the other holds one stage more than `stagger`, and the other must get through all of those.
  constexpr bool is_sound() const {
    return stages >= 2 && groups() >= 1 && groups() <= 2 &&
           m % (is_pingpong() ? 64 : 64 * groups_m) == 0 && group_n() % 64 == 0 &&
           group_n() <= 256 && cluster() <= 2 && m / cluster_n % 8 == 0 && n / cluster_m % 8 == 0 &&
           m / cluster_n <= 256 && n / cluster_m <= 256 &&
           (stagger == 0 || (!is_pingpong() && groups() == 2 && stagger > 0 && stagger < stages));
  }
};

}  // namespace octet::cuda
