// Differences of numbers and pictures, on cases that can be worked out by hand.
#include "measure/compare/difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "formats/error_message.h"

namespace octet::test {
namespace {

using measure::difference;
using measure::PixelView;
using measure::psnr_db;
using measure::ssim;
using measure::statistic;

using Numbers = std::vector<float>;
using Pixels = std::vector<uint8_t>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Difference apart(const Numbers& a, const Numbers& b) { return difference(a, b); }

TEST(Difference, OfThreeFourFive) {
  // |a| = 5, |b| = 5, a . b = 24, b - a = (1, -1).
  const Difference d = apart({3, 4}, {4, 3});
  EXPECT_DOUBLE_EQ(d.cosine, 24.0 / 25);
  EXPECT_DOUBLE_EQ(d.relative_rmse, std::sqrt(2.0) / 5);
  EXPECT_DOUBLE_EQ(d.snr_db, 10 * std::log10(25.0 / 2));
  EXPECT_EQ(d.max_abs, 1);
}

TEST(Difference, TheFirstIsTheReference) {
  const Difference d = apart({1, 0}, {3, 0}), back = apart({3, 0}, {1, 0});
  EXPECT_EQ(d.cosine, 1);
  EXPECT_EQ(d.relative_rmse, 2);
  EXPECT_DOUBLE_EQ(back.relative_rmse, 2.0 / 3);
  EXPECT_EQ(d.max_abs, 2);
  EXPECT_DOUBLE_EQ(d.snr_db, 10 * std::log10(1.0 / 4));
  EXPECT_DOUBLE_EQ(back.snr_db, 10 * std::log10(9.0 / 4));
}

TEST(Difference, OfEqualNumbers) {
  for (const Numbers& a : {Numbers{1, -2, 0.3f}, Numbers{0, 0}, Numbers{}}) {
    const Difference d = apart(a, a);
    EXPECT_EQ(d.cosine, 1);
    EXPECT_EQ(d.relative_rmse, 0);
    EXPECT_EQ(d.snr_db, kInfinity);
    EXPECT_EQ(d.max_abs, 0);
  }
}

TEST(Difference, OfOppositesAndRightAngles) {
  EXPECT_EQ(apart({1, 2}, {-1, -2}).cosine, -1);
  EXPECT_EQ(apart({1, 2}, {-1, -2}).relative_rmse, 2);
  EXPECT_EQ(apart({1, 0}, {0, 5}).cosine, 0);
}

TEST(Difference, FromZero) {
  const Difference d = apart({0, 0}, {0, 2});
  EXPECT_EQ(d.cosine, 0);
  EXPECT_EQ(d.relative_rmse, kInfinity);
  EXPECT_EQ(d.snr_db, -kInfinity);
  EXPECT_EQ(d.max_abs, 2);
  EXPECT_EQ(apart({0, 2}, {0, 0}).relative_rmse, 1);
  EXPECT_EQ(apart({0, 2}, {0, 0}).snr_db, 0);
}

TEST(Difference, SumsInDouble) {
  // A sum in float stands still at 2^24.
  const Numbers a(1 << 25, 1.0f);
  Numbers b = a;
  b.back() = 2;
  const Difference d = apart(a, b);
  EXPECT_DOUBLE_EQ(d.relative_rmse, std::sqrt(1.0 / (1 << 25)));
  EXPECT_LT(d.cosine, 1);
}

TEST(Difference, OfTheLargestAndSmallestNumbers) {
  const float big = std::numeric_limits<float>::max();
  const float small = std::numeric_limits<float>::denorm_min();
  for (const float size : {big, small}) {
    const Difference d = apart({size, size}, {size, 0});
    EXPECT_DOUBLE_EQ(d.cosine, std::sqrt(0.5));
    EXPECT_DOUBLE_EQ(d.relative_rmse, std::sqrt(0.5));
    EXPECT_EQ(d.max_abs, static_cast<double>(size));
  }
}

TEST(Difference, RefusesOtherLengths) { EXPECT_ERROR_WITH(apart({1, 2}, {1}), "2 and 1 numbers"); }

TEST(Statistic, MeanAndStandardError) {
  const Statistic s = statistic(std::vector<double>{1, 2, 3, 6});
  EXPECT_EQ(s.mean, 3);
  EXPECT_DOUBLE_EQ(s.standard_error, std::sqrt((4 + 1 + 0 + 9) / 3.0 / 4));
  EXPECT_EQ(s.count, 4);
}

TEST(Statistic, LeavesEqualOnesOut) {
  const Statistic s = statistic(std::vector<double>{1, kInfinity, 3});
  EXPECT_EQ(s.mean, 2);
  EXPECT_EQ(s.standard_error, 1);
  EXPECT_EQ(s.count, 2);
  const Statistic one = statistic(std::vector<double>{kInfinity, 7});
  EXPECT_EQ(one.mean, 7);
  EXPECT_TRUE(std::isnan(one.standard_error));
  EXPECT_EQ(one.count, 1);
  EXPECT_TRUE(std::isnan(statistic(std::vector<double>{kInfinity}).mean));
  EXPECT_EQ(statistic({}).count, 0);
}

Pixels constant(int width, int height, uint8_t value) {
  return Pixels(static_cast<size_t>(width * height * 3), value);
}

TEST(Psnr, OfOneByte) {
  const Pixels a = constant(4, 2, 100);
  Pixels b = a;
  b[5] = 90;
  EXPECT_DOUBLE_EQ(psnr_db({a, 4, 2}, {b, 4, 2}), 10 * std::log10(255.0 * 255 * 24 / 100));
  EXPECT_EQ(psnr_db({a, 4, 2}, {a, 4, 2}), kInfinity);
  const Pixels black = constant(4, 2, 0), white = constant(4, 2, 255);
  EXPECT_EQ(psnr_db({black, 4, 2}, {white, 4, 2}), 0);
}

TEST(Ssim, OfConstantPicturesIsTheRatioOfTheirMeans) {
  // No variance: what is left is (2 x y + C1) / (x^2 + y^2 + C1), C1 = (0.01 * 255)^2.
  constexpr double kC1 = 2.55 * 2.55;
  const Pixels a = constant(13, 12, 100), b = constant(13, 12, 50);
  const double expected = (2 * 100 * 50 + kC1) / (100 * 100 + 50 * 50 + kC1);
  EXPECT_NEAR(ssim({a, 13, 12}, {b, 13, 12}), expected, 1e-9);  // sums of rounded weights
}

TEST(Ssim, OfEqualPicturesIsOne) {
  Pixels a = constant(20, 11, 0);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<uint8_t>(i * 37);
  EXPECT_EQ(ssim({a, 20, 11}, {a, 20, 11}), 1);
}

TEST(Ssim, ChannelsAreMeasuredApart) {
  // Two channels equal, one black against white: a third of the windows' values is nearly zero.
  const Pixels a = constant(11, 11, 0);
  Pixels b = a;
  for (size_t i = 0; i < b.size(); i += 3) b[i] = 255;
  constexpr double kC1 = 2.55 * 2.55;
  EXPECT_NEAR(ssim({a, 11, 11}, {b, 11, 11}), (2 + kC1 / (255 * 255 + kC1)) / 3, 1e-9);
}

TEST(Ssim, SmallPicturesHaveNone) {
  for (const auto& [width, height] : {std::pair{10, 20}, std::pair{20, 10}}) {
    const Pixels a = constant(width, height, 1);
    EXPECT_TRUE(std::isnan(ssim({a, width, height}, {a, width, height})));
  }
}

TEST(Pictures, OfOtherSizesAreRefused) {
  const Pixels a = constant(4, 3, 0);
  for (const auto& measure : {psnr_db, ssim}) {
    EXPECT_THROW(measure({a, 4, 3}, {a, 3, 4}), Error);
    EXPECT_THROW(measure({a, 4, 4}, {a, 4, 4}), Error);
    EXPECT_THROW(measure({{}, 0, 0}, {{}, 0, 0}), Error);
  }
}

}  // namespace
}  // namespace octet::test
