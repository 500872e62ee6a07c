// exact_silu against the silu of f64, with the error bounds that its header states. That every
// backend gives its bits is checked in gemm_test.cpp.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "backend/exact_silu.h"

namespace octet {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kClamp = -86.6f;

double true_silu(double x) { return x / (1.0 + std::exp(-x)); }

// See exact_silu.h. The second term is what the constant log2(e) is off, times ln(2); the third is
// the rounding of a denormal result.
double bound(float x) {
  const double relative = 3.8e-7 + 1.4e-8 * std::fmax(0.0, -static_cast<double>(x));
  return relative * std::fabs(true_silu(x)) + 0x1p-149;
}

TEST(ExactSilu, IsWithinItsBoundOverAllFloats) {
  // An odd step, so that the low bits of the mantissa vary.
  for (uint32_t magnitude = 0; magnitude < 0x7f800000u; magnitude += 1501) {
    for (const uint32_t sign : {0u, 0x80000000u}) {
      const float x = std::bit_cast<float>(magnitude | sign);
      if (x < kClamp) continue;
      ASSERT_LE(std::fabs(exact_silu(x) - true_silu(x)), bound(x)) << x;
    }
  }
}

// Other devices are compared with these bits: a change of them is a change of the contract. The
// number is their FNV-1a hash, by words.
TEST(ExactSilu, BitsAreTheContracts) {
  uint64_t hash = 14695981039346656037u;
  for (uint32_t magnitude = 0; magnitude < 0x7f800000u; magnitude += 1501) {
    for (const uint32_t sign : {0u, 0x80000000u}) {
      const float y = exact_silu(std::bit_cast<float>(magnitude | sign));
      hash = (hash ^ std::bit_cast<uint32_t>(y)) * 1099511628211u;
    }
  }
  EXPECT_EQ(hash, 0x42bdc778c5c0ba41u);
}

TEST(ExactSilu, IsWithinItsBoundWhereItBends) {
  for (int step = -865'900; step <= 866'400; ++step) {
    const float x = static_cast<float>(step) * 1e-4f;
    ASSERT_LE(std::fabs(exact_silu(x) - true_silu(x)), bound(x)) << x;
  }
}

// 1.3e-7 is two roundings: the exponential no longer counts, and 1 / 1 is exact but for the last.
TEST(ExactSilu, BecomesTheIdentity) {
  for (float x = 20.0f; x < 3e38f; x *= 1.0001f)
    ASSERT_LE(std::fabs(exact_silu(x) - x), 1.3e-7 * x);
  EXPECT_EQ(exact_silu(std::numeric_limits<float>::max()), std::numeric_limits<float>::max());
}

TEST(ExactSilu, FarBelowZeroItIsXTimesAConstant) {
  const float limit = exact_silu(kClamp) / kClamp;
  EXPECT_LT(limit, 0x1p-124f);
  EXPECT_GT(limit, 0x1p-125f);
  for (float x = kClamp; x > -3e38f; x *= 1.001f) ASSERT_EQ(exact_silu(x), x * limit);
}

// Steps so wide that the function moves more than its error bound.
TEST(ExactSilu, TailsAreMonotone) {
  for (float x = -86.5f; x < -1.4f; x += 1e-2f)
    ASSERT_LT(exact_silu(x + 1e-2f), exact_silu(x)) << x;
  for (float x = -1.1f; x < 1e30f; x += std::fmax(1e-2f, x * 1e-2f)) {
    ASSERT_GT(exact_silu(x + std::fmax(1e-2f, x * 1e-2f)), exact_silu(x)) << x;
  }
}

TEST(ExactSilu, SpecialValues) {
  EXPECT_TRUE(std::isnan(exact_silu(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(exact_silu(-std::numeric_limits<float>::quiet_NaN())));
  EXPECT_EQ(exact_silu(kInfinity), kInfinity);
  EXPECT_EQ(exact_silu(-kInfinity), -kInfinity);
  EXPECT_EQ(std::bit_cast<uint32_t>(exact_silu(0.0f)), 0u);
  EXPECT_EQ(std::bit_cast<uint32_t>(exact_silu(-0.0f)), 0x80000000u);
}

TEST(ExactSilu, DenormalsAreHalved) {
  for (uint32_t bits = 2; bits < 0x00800000u; bits += 202) {
    const float x = std::bit_cast<float>(bits);
    ASSERT_EQ(exact_silu(x), x * 0.5f);
    ASSERT_EQ(exact_silu(-x), -x * 0.5f);
  }
}

}  // namespace
}  // namespace octet
