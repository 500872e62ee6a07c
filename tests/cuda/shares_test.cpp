// How problems are cut into tiles, in which order, and what is expected to be fast. Needs no GPU.
#include "cuda/gemm/shares.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace octet::cuda {
namespace {

const GemmRow kWide(HopperTile{256, 192, 4, Sharing::cooperative, 2, 1, 1, 2, 2});
const GemmRow kPingpong(HopperTile{128, 192, 5, Sharing::pingpong, 2, 1, 2, 1, 0});
const GemmRow kTall(HopperTile{128, 256, 4, Sharing::cooperative, 2, 1, 2, 1, 2});
const GemmRow kFlat(HopperTile{128, 256, 4, Sharing::cooperative, 2, 1, 1, 2, 2});

struct Shape {
  int64_t n, k;
};
constexpr Shape kQkv = {13824, 4608}, kO = {4608, 4608}, kW2 = {4608, 12288};

DeviceTraits h200() {
  DeviceTraits traits;
  traits.major = 9;
  traits.multiprocessors = 132;
  traits.clock_ghz = 1.98;
  traits.l2_bytes = 60 << 20;
  return traits;
}

GemmProblem problem_of(int64_t m, Shape shape) { return {.m = m, .n = shape.n, .k = shape.k}; }

Shares shares_of(const GemmRow& row, const GemmProblem& problem, bool streams = false) {
  return share_tiles({&row, streams, ""}, problem, h200().multiprocessors / row.cluster());
}

double us_of(const GemmRow& row, int64_t m, Shape shape, bool streams = false) {
  const GemmProblem problem = problem_of(m, shape);
  return expected_us({&row, streams, ""}, problem, shares_of(row, problem, streams), h200());
}

int rows_of(const GemmRow& row, int64_t m, Shape shape) {
  return raster_rows(row, shares_of(row, problem_of(m, shape)), shape.k, h200().l2_bytes);
}

// What was measured under load, see docs/kernels/hopper.md.
TEST(Shares, TheEstimatePrefersWhatWinsUnderLoad) {
  for (const Shape shape : {kQkv, kO, kW2}) {
    const double best = us_of(kWide, 4096, shape);
    EXPECT_LT(best, 0.98 * us_of(kPingpong, 4096, shape)) << shape.n << " " << shape.k;
    EXPECT_LT(best, 0.98 * us_of(kTall, 4096, shape)) << shape.n << " " << shape.k;
  }
  // At m = 4133 clusters along n waste fewer rows.
  EXPECT_LT(us_of(kFlat, 4133, kQkv), us_of(kTall, 4133, kQkv));
  EXPECT_LT(us_of(kFlat, 4133, kQkv), us_of(kWide, 4133, kQkv));
  EXPECT_LT(us_of(kFlat, 4133, kQkv), us_of(kPingpong, 4133, kQkv));
}

TEST(Shares, TheEstimateSharesTilesOnlyWhereItPaid) {
  for (const int64_t m : {2304, 4608}) {
    EXPECT_GT(us_of(kWide, m, kO, true), us_of(kWide, m, kO)) << m;
  }
  EXPECT_LT(us_of(kTall, 512, kW2, true), us_of(kTall, 512, kW2));
}

TEST(Shares, WholeTilesFillTheDeviceAndTheRestIsShared) {
  const GemmProblem problem = problem_of(4096, kO);
  const Shares whole = shares_of(kWide, problem);
  EXPECT_EQ(whole.tiles_m, 16);
  EXPECT_EQ(whole.tiles_n, 12);
  EXPECT_EQ(whole.workers, 66);
  EXPECT_EQ(whole.shared_tiles(), 0);
  const Shares shared = shares_of(kWide, problem, true);
  EXPECT_EQ(shared.whole_tiles, 132);
  EXPECT_EQ(shared.shared_tiles(), 60);
  EXPECT_EQ(share_tiles({&kWide, false, ""}, problem, 0).workers, 0);
}

// All rows of tiles if the activations stay in half of the L2, else even groups.
TEST(Shares, RasterRowsKeepTheActivationsInL2) {
  EXPECT_EQ(rows_of(kWide, 4096, kQkv), 16);
  EXPECT_EQ(rows_of(kWide, 4133, kQkv), 17);  // and not 16 and 1
  EXPECT_EQ(rows_of(kFlat, 4133, kQkv), 33);
  EXPECT_EQ(rows_of(kWide, 4608, kO), 18);
  EXPECT_EQ(rows_of(kPingpong, 16384, kQkv), 22);
  EXPECT_EQ(rows_of(kWide, 4096, kW2), 8);
  EXPECT_EQ(rows_of(kWide, 4133, kW2), 9);
  EXPECT_EQ(rows_of(kWide, 16384, kW2), 10);
}

TEST(Shares, RasterRowsAreBetweenOneAndAll) {
  for (const int64_t m : {1, 64, 300, 4096, 1 << 20}) {
    for (const int64_t k : {0, 16, 4608, 132104}) {
      for (const GemmRow* row : {&kWide, &kTall, &kFlat, &kPingpong}) {
        const Shares shares = shares_of(*row, problem_of(m, {4608, k}));
        for (const int64_t l2_bytes : {0, 4 << 20, 60 << 20}) {
          const int rows = raster_rows(*row, shares, k, l2_bytes);
          EXPECT_GE(rows, 1);
          EXPECT_LE(rows, shares.tiles_m) << row->name << " " << m << " " << k;
        }
      }
    }
  }
}

}  // namespace
}  // namespace octet::cuda
