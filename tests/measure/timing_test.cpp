// Which figures are marked as unreliable, on timings that were made up.
#include "measure/timing.h"

#include <gtest/gtest.h>

namespace octet::measure {
namespace {

TEST(Timing, IsMedianAndInterquartileRangeOverIt) {
  const Timing timing = timing_of({50, 10, 40, 20, 30});
  EXPECT_DOUBLE_EQ(timing.median, 30);
  EXPECT_DOUBLE_EQ(timing.spread, (40.0 - 20.0) / 30.0);
  const Timing even = timing_of({1, 2, 3, 4});
  EXPECT_DOUBLE_EQ(even.median, 2.5);
  EXPECT_DOUBLE_EQ(even.spread, (3.25 - 1.75) / 2.5);
}

TEST(Timing, OfNothingAndOfOne) {
  EXPECT_EQ(timing_of({}).median, 0);
  EXPECT_EQ(timing_of({}).spread, 0);
  EXPECT_EQ(timing_of({7}).median, 7);
  EXPECT_EQ(timing_of({7}).spread, 0);
  EXPECT_EQ(timing_of({0, 0, 0}).spread, 0);  // no division by a median of 0
}

TEST(Steadiness, OneOutlierDoesNotMatter) {
  const Steadiness steady = steadiness_of({timing_of({100, 101, 99, 100, 102, 98, 5000})});
  EXPECT_TRUE(steady.reliable);
  EXPECT_LT(steady.spread, 0.05);
}

TEST(Steadiness, TurnsThatDisagreeAreUnreliable) {
  // A neighbour takes the core in every other turn.
  const Steadiness busy = steadiness_of({timing_of({100, 210, 99, 230, 101, 190, 220})});
  EXPECT_FALSE(busy.reliable);
  EXPECT_GT(busy.spread, kMostSpread);
}

TEST(Steadiness, TheWorstOfARowCounts) {
  const Timing calm = timing_of({100, 101, 99, 100, 100});
  const Timing busy = timing_of({100, 200, 300, 100, 250});
  EXPECT_TRUE(steadiness_of({calm, calm}).reliable);
  const Steadiness both = steadiness_of({calm, busy});
  EXPECT_FALSE(both.reliable);
  EXPECT_EQ(both.spread, busy.spread);
}

TEST(Steadiness, TheLimitItselfIsReliable) {
  EXPECT_TRUE(steadiness_of({{100, kMostSpread, 7}}).reliable);
  EXPECT_FALSE(steadiness_of({{100, kMostSpread * 1.0001, 7}}).reliable);
}

TEST(Steadiness, TwoRoundsSayNothing) {
  EXPECT_TRUE(steadiness_of({timing_of({1, 1, 1})}).reliable);
  EXPECT_FALSE(steadiness_of({timing_of({1, 1, 1}), timing_of({1, 1})}).reliable);
  EXPECT_FALSE(steadiness_of({timing_of({1})}).reliable);
}

// 811 % of the peak: the load ended between the two, and each was steady by itself.
TEST(Steadiness, NothingPassesItsCeiling) {
  EXPECT_TRUE(is_possible(0));
  EXPECT_TRUE(is_possible(1.02));
  EXPECT_FALSE(is_possible(8.11));
}

}  // namespace
}  // namespace octet::measure
