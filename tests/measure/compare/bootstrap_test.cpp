// Intervals on cases whose resamples can be listed by hand, and how often they hold the truth.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "measure/compare/difference.h"

namespace octet::test {
namespace {

using measure::bootstrap_mean;
using measure::grouped_statistic;
using measure::Groups;
using measure::Interval;

constexpr double kEndless = std::numeric_limits<double>::infinity();

TEST(Bootstrap, OfTwoCaptions) {
  // A quarter of the resamples is {0, 0}, half {0, 1}, a quarter {1, 1}: both tails are longer than
  // 2.5 %.
  const Interval interval = bootstrap_mean({{0}, {1}});
  EXPECT_EQ(interval.low, 0);
  EXPECT_EQ(interval.high, 1);
}

TEST(Bootstrap, SeedsOfACaptionStayTogether) {
  // Resamples are {0, 2, 0, 2}, {0, 2, 5} and {5, 5}: a mean of 0 or 2 would be a caption torn
  // apart.
  const Interval interval = bootstrap_mean({{0, 2}, {5}});
  EXPECT_EQ(interval.low, 1);
  EXPECT_EQ(interval.high, 5);
}

TEST(Bootstrap, RareResamplesAreOutside) {
  // One of ten captions is 1: resamples have it Binomial(10, 0.1) times. P(0) = 0.349 is above
  // 2.5 %; P(> 3) = 0.0128 is below it and P(> 2) = 0.070 is above: the interval ends at 3 of 10.
  Groups groups(9, {0.0});
  groups.push_back({1.0});
  const Interval interval = bootstrap_mean(groups);
  EXPECT_EQ(interval.low, 0);
  EXPECT_DOUBLE_EQ(interval.high, 0.3);
}

TEST(Bootstrap, IsTheSameEachTime) {
  Groups groups;
  for (int i = 0; i < 20; ++i) groups.push_back({std::sin(i), std::cos(i)});
  const Interval first = bootstrap_mean(groups), second = bootstrap_mean(groups);
  EXPECT_EQ(first.low, second.low);
  EXPECT_EQ(first.high, second.high);
  EXPECT_LT(first.low, first.high);
}

TEST(Bootstrap, OneCaptionHasNoInterval) {
  for (const Groups& groups : {Groups{}, Groups{{1, 2, 3}}, Groups{{1, 2}, {kEndless}, {}}}) {
    EXPECT_TRUE(std::isnan(bootstrap_mean(groups).low));
    EXPECT_TRUE(std::isnan(bootstrap_mean(groups).high));
  }
}

TEST(Bootstrap, StatisticsLeaveInfinityOut) {
  const Statistic statistic = grouped_statistic({{1, kEndless}, {2, 6}});
  EXPECT_EQ(statistic.count, 3);
  EXPECT_EQ(statistic.mean, 3);
  EXPECT_EQ(statistic.median, 2);
  EXPECT_EQ(statistic.low, 1);
  EXPECT_EQ(statistic.high, 4);
  EXPECT_EQ(grouped_statistic({{1, 2}, {4, 9}}).median, 3);
  EXPECT_TRUE(std::isnan(grouped_statistic({{kEndless}}).median));
}

// Captions differ more than seeds of one do. An interval over pictures would take the two seeds for
// independent, and hold the truth far too seldom.
TEST(Bootstrap, CoversTheTruth) {
  constexpr int kExperiments = 300, kCaptions = 40, kSeeds = 4;
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  int by_caption = 0, by_picture = 0;
  for (int experiment = 0; experiment < kExperiments; ++experiment) {
    Groups groups, torn;
    for (int i = 0; i < kCaptions; ++i) {
      const double caption = normal(random);
      groups.emplace_back();
      for (int seed = 0; seed < kSeeds; ++seed) {
        groups.back().push_back(caption + 0.3 * normal(random));
        torn.push_back({groups.back().back()});
      }
    }
    const auto holds = [](const Interval& interval) {
      return interval.low <= 0 && 0 <= interval.high;
    };
    by_caption += holds(bootstrap_mean(groups));
    by_picture += holds(bootstrap_mean(torn));
  }
  // 95 % is meant; of 300 experiments the share has a standard deviation of 1.3 %.
  EXPECT_GT(by_caption, 0.90 * kExperiments);
  EXPECT_LT(by_caption, 0.99 * kExperiments);
  EXPECT_LT(by_picture, 0.80 * kExperiments);
}

}  // namespace
}  // namespace octet::test
