#include "engine/noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <thread>

namespace octet::test {
namespace {

using engine::fill_noise;
using engine::make_noise;
using engine::philox4x32;
using engine::PhiloxCounter;

uint64_t fnv1a(const std::vector<float>& values) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const float value : values) {
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) {
      hash = (hash ^ (bits >> shift & 0xff)) * 0x100000001b3;
    }
  }
  return hash;
}

// The known answers that come with Random123.
TEST(Noise, PhiloxKnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// Against the C library's functions, which are within an ulp of double.
TEST(Noise, IsBoxMullerOfThePhiloxWords) {
  const std::vector<float> values = make_noise(0x123456789abcdef0, 3, 40'000);
  for (uint32_t block = 0; block < values.size() / 4; ++block) {
    const PhiloxCounter words = philox4x32({block, 0, 3, 0}, {0x9abcdef0, 0x12345678});
    for (size_t pair = 0; pair < 2; ++pair) {
      const double length = std::sqrt(-2 * std::log((words[2 * pair] + 0.5) * 0x1p-32));
      const double angle = 2 * M_PI * ((words[2 * pair + 1] + 0.5) * 0x1p-32);
      const float* const value = &values[4 * block + 2 * pair];
      // Half an ulp of float below 8, and the error of an angle near 2 pi in double.
      EXPECT_NEAR(value[0], length * std::cos(angle), 0x1p-22) << block;
      EXPECT_NEAR(value[1], length * std::sin(angle), 0x1p-22) << block;
    }
  }
}

// Changes when any bit of the noise does, on any processor: pictures of old seeds would change.
TEST(Noise, GoldenHash) {
  EXPECT_EQ(fnv1a(make_noise(0, 0, 1 << 16)), 0x61d48e289027dbc6u);
  EXPECT_EQ(fnv1a(make_noise(~uint64_t{0}, 7, 12'345)), 0x6e0007a8672f0a9du);
}

TEST(Noise, MomentsAreThoseOfANormalDistribution) {
  constexpr size_t kCount = 1 << 20;
  const std::vector<float> values = make_noise(42, 0, kCount);
  double sums[5] = {};
  for (const double value : values) {
    double power = 1;
    for (double& sum : sums) {
      sum += power;
      power *= value;
    }
  }
  // The moments' standard deviations are sqrt(v / n) with v = 1, 2, 15, 96; four of them.
  const double deviation = 1 / std::sqrt(static_cast<double>(kCount));
  EXPECT_NEAR(sums[1] / kCount, 0, 4 * deviation);
  EXPECT_NEAR(sums[2] / kCount, 1, 4 * deviation * std::sqrt(2.0));
  EXPECT_NEAR(sums[3] / kCount, 0, 4 * deviation * std::sqrt(15.0));
  EXPECT_NEAR(sums[4] / kCount, 3, 4 * deviation * std::sqrt(96.0));
  const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
  EXPECT_LT(*lowest, -4.2f);  // a million values have some beyond
  EXPECT_GT(*highest, 4.2f);
}

TEST(Noise, KolmogorovSmirnov) {
  constexpr size_t kCount = 1 << 18;
  std::vector<float> values = make_noise(7, 1, kCount);
  std::sort(values.begin(), values.end());
  double distance = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const double below = 0.5 * std::erfc(-values[i] / std::sqrt(2.0));
    distance = std::max({distance, std::abs(below - static_cast<double>(i) / kCount),
                         std::abs(below - static_cast<double>(i + 1) / kCount)});
  }
  // sqrt(n) D exceeds 1.95 once in a thousand samples of a true normal distribution.
  EXPECT_LT(distance * std::sqrt(static_cast<double>(kCount)), 1.95);
}

TEST(Noise, NeighboursSeedsAndImagesAreUncorrelated) {
  constexpr size_t kCount = 1 << 18;
  const std::vector<float> base = make_noise(1, 0, kCount + 4);
  const auto correlation = [&](const std::vector<float>& other, size_t lag) {
    double sum = 0;
    for (size_t i = 0; i < kCount; ++i) sum += static_cast<double>(base[i]) * other[i + lag];
    return sum / kCount;
  };
  const double bound = 4 / std::sqrt(static_cast<double>(kCount));  // standard deviations
  for (size_t lag = 1; lag <= 4; ++lag) EXPECT_LT(std::abs(correlation(base, lag)), bound) << lag;
  EXPECT_LT(std::abs(correlation(make_noise(2, 0, kCount), 0)), bound);
  EXPECT_LT(std::abs(correlation(make_noise(1, 1, kCount), 0)), bound);
  EXPECT_LT(std::abs(correlation(make_noise(1ull << 32, 0, kCount), 0)), bound);
}

TEST(Noise, DoesNotDependOnHowItIsSplit) {
  constexpr size_t kCount = 10'007;
  const std::vector<float> whole = make_noise(5, 2, kCount);
  for (const size_t pieces : {2, 3, 64}) {
    std::vector<float> filled(kCount);
    std::vector<std::thread> threads;
    for (size_t piece = 0; piece < pieces; ++piece) {
      const size_t begin = kCount * piece / pieces;
      const size_t end = kCount * (piece + 1) / pieces;
      threads.emplace_back([&filled, begin, end] {
        fill_noise(std::span(filled).subspan(begin, end - begin), 5, 2, begin);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(filled, whole) << pieces;
  }
}

TEST(Noise, EveryArgumentCounts) {
  const auto first = [](uint64_t seed, uint64_t image, uint64_t element) {
    float value = 0;
    fill_noise({&value, 1}, seed, image, element);
    return value;
  };
  const uint64_t far = 1ull << 40;
  const std::set<float> values = {first(0, 0, 0),  first(1, 0, 0),   first(far, 0, 0),
                                  first(0, 1, 0),  first(0, far, 0), first(0, 0, 1),
                                  first(0, 0, far)};
  EXPECT_EQ(values.size(), 7u);
  EXPECT_TRUE(make_noise(0, 0, 0).empty());
}

}  // namespace
}  // namespace octet::test
