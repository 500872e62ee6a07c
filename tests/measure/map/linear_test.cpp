// Ways of one linear, measured where there are the fewest: on the host.
#include <gtest/gtest.h>

#include "devices/select.h"
#include "formats/error_message.h"
#include "measure/bench/problems.h"
#include "measure/map/map.h"

namespace octet::measure {
namespace {

TEST(MapLinear, TheHostHasThreeWays) {
  const auto backend = select_backend({.device = "cpu", .threads = 1});
  const LinearTimes times = measure_ways(*backend, {16, 64, 192}, {.seconds = 0, .rounds = 1});
  ASSERT_EQ(times.ways.size(), 3u);
  EXPECT_EQ(times.ways[0].way, kInt8);
  EXPECT_EQ(times.ways[1].way, kBf16);
  EXPECT_EQ(times.ways[2].way, kFakeInt8);
  for (const WayTimes& way : times.ways) {
    EXPECT_GT(way.cold_us, 0) << way.way;
    EXPECT_GT(way.load_us, 0) << way.way;
    EXPECT_GT(way.error, 0) << way.way;
    EXPECT_FALSE(way.how.empty());
  }
  // Codes err more than bf16 does, and alike whichever way they are multiplied.
  EXPECT_GT(times.ways[0].error, times.ways[1].error);
  EXPECT_NEAR(times.ways[0].error, times.ways[2].error, 0.01);
  EXPECT_FALSE(times.plan.kernel.empty());
}

TEST(MapLinear, TheFasterOneUnderLoadIsTaken) {
  std::vector<WayTimes> ways = {{.way = kInt8, .cold_us = 1, .load_us = 30},
                                {.way = kBf16, .cold_us = 2, .load_us = 20},
                                {.way = kFp8, .cold_us = 9, .load_us = 10}};
  EXPECT_EQ(own_path(ways), kBf16);
  EXPECT_EQ(fastest_way(ways), kFp8);
  ways[0].load_us = 5;
  EXPECT_EQ(own_path(ways), kInt8);
  EXPECT_EQ(fastest_way(ways), kInt8);
  EXPECT_EQ(own_path({}), "");
  EXPECT_EQ(fastest_way({}), "");
}

}  // namespace
}  // namespace octet::measure
