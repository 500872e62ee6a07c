#include "cuda/gemm/shares.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"

namespace octet::cuda {
namespace {

// A block that shares a tile should do more than add up its accumulators.
constexpr int64_t kFewestSharedSteps = 2;

// Operations per clock and multiprocessor on s8, as reached in practice.
double peak_of(const DeviceTraits& traits, const GemmRow& row) {
  if (row.hopper) return 7500;  // of 8192
  if (traits.major == 8 && traits.minor == 0) return 4096;
  if (traits.major == 9 || traits.major == 10) return 5500;  // measured on an H200
  return 2048;
}

// Rounds of whole tiles that the workers need. At its power limit a GPU whose last round is not
// full has a higher clock in it, which makes up for about half of what is idle: under load on an
// H200 (docs/kernels/hopper.md, m = 4096), 128x256 was slower than 256x192 by 3, 12 and 4 % on qkv,
// o and w2, where whole rounds predict 7, 14 and 13 %, and their exact number 3, 3 and 2 %.
double rounds_of(const GemmRow& row, const Shares& shares) {
  if (shares.workers == 0) return 0;
  const double exact = double(shares.whole_tiles) / shares.workers;
  return row.hopper ? (exact + std::ceil(exact)) / 2 : std::ceil(exact);
}

}  // namespace

Shares share_tiles(const GemmCandidate& candidate, const GemmProblem& problem, int64_t room) {
  const GemmRow& row = *candidate.row;
  Shares shares;
  shares.tiles_m = static_cast<int>(ceil_div(problem.m, row.worker_m()));
  shares.tiles_n = static_cast<int>(ceil_div(problem.n, row.worker_n()));
  // At least one: with k = 0 the zeros are written too.
  shares.k_steps = static_cast<int>(std::max<int64_t>(1, ceil_div(problem.k, row.k)));
  const int64_t tiles = int64_t{shares.tiles_m} * shares.tiles_n;
  if (room == 0 || tiles == 0) return shares;
  shares.workers = static_cast<int>(std::min(tiles, room));
  shares.whole_tiles = static_cast<int>(tiles);
  if (candidate.streams) {
    shares.whole_tiles = static_cast<int>(tiles / room * room);
    shares.workers = static_cast<int>(room);
    if (shares.whole_tiles == 0) {
      // Equally many workers for each tile, if there can be two: fewer meet in a tile that way.
      const int64_t per_tile = std::min(room / tiles, shares.k_steps / kFewestSharedSteps);
      if (per_tile >= 2) {
        shares.workers = static_cast<int>(tiles * per_tile);
      } else {
        shares.workers =
            static_cast<int>(std::min(room, ceil_div(tiles * shares.k_steps, kFewestSharedSteps)));
      }
    }
  }
  return shares;
}

// Tiles are walked in groups of rows, column by column. Within a group the rows of `a` are read for
// each column, and should stay in L2: half of it, since the other half of the GPU may keep copies,
// and w and the outputs pass through. w is read once for each group, so groups should be few. On an
// H200 at m = 16384, n = 13824, k = 4608, 128x192 ping-pong in rows of 256: 16 rows (19 MB) reached
// 1669 TOPS, 8 rows 1672, 4 rows 1639, 64 rows (75 MB) 1386. If not even a square of tiles fits,
// nothing stays, and a square has the shortest edges. All groups get about the same number of rows:
// a last one of a single row would fetch all of w for it.
int raster_rows(const GemmRow& row, const Shares& shares, int64_t k, int64_t l2_bytes) {
  const int64_t row_bytes = row.worker_m() * std::max<int64_t>(k, 1);
  const int64_t fitting = l2_bytes / 2 / row_bytes;
  const auto square =
      static_cast<int64_t>(std::sqrt(double(shares.workers) * row.worker_n() / row.worker_m()));
  const int64_t most = std::max<int64_t>({fitting, square, 1});
  const int64_t groups = std::max<int64_t>(1, ceil_div(shares.tiles_m, most));
  return static_cast<int>(std::max<int64_t>(1, ceil_div(shares.tiles_m, groups)));
}

double expected_us(const GemmCandidate& candidate, const GemmProblem& problem, const Shares& shares,
                   const DeviceTraits& traits) {
  const GemmRow& row = *candidate.row;
  const double blocks = double(shares.workers) * row.cluster();
  const double resident = std::max(1.0, std::ceil(blocks / traits.multiprocessors));
  // Clocks of one k step of a block while `resident` of them share a multiprocessor: the larger of
  // multiplying, reading shared memory (128 bytes per clock) and fetching from L2 (some 40).
  const double multiply = 2.0 * row.m * row.n * row.k / peak_of(traits, row);
  const double read = row.read_bytes / 128.0;
  const double rows_a = double(std::min<int64_t>(row.m, problem.m)) / row.cluster_n;
  const double fetch = (rows_a + double(row.n) / row.cluster_m) * row.k / 40.0;
  constexpr double kStepOverhead = 60;
  const double step = std::max({multiply, read, fetch}) * resident + kStepOverhead;
  const double rounds = rounds_of(row, shares);
  double steps = rounds * shares.k_steps;
  double clocks_extra = rounds * 1500 * resident;  // epilogues
  if (candidate.streams && shares.workers > 0) {
    steps += std::ceil(double(shares.shared_tiles()) * shares.k_steps / shares.workers);
    // Partial sums to memory and back. Hopper's figure is what 256x192 lost on an H200: 11 and 3 %
    // on o at m = 2304 and 4608.
    clocks_extra += 6000 + row.m * row.n * (row.hopper ? 7.0 : 4.0) / 16;
  }
  return (steps * step + clocks_extra) / (traits.clock_ghz * 1e3) + 3;
}

}  // namespace octet::cuda
