// Factors of SmoothQuant: by hand, as powers of two, and of channels that say nothing.
#include "quant/smoothing.h"

#include <gtest/gtest.h>

#include <cmath>

#include "formats/error_message.h"

namespace octet::test {
namespace {

using quant::smooth_factors;
using Values = std::vector<float>;

TEST(SmoothFactors, AreTheirDefinitionAroundTheMiddle) {
  // sqrt(activation / weight) is 2, 4, 8; the middle becomes 1.
  EXPECT_EQ(smooth_factors(Values{4, 16, 64}, Values{1, 1, 1}, 0.5f, false), (Values{0.5f, 1, 2}));
  EXPECT_EQ(smooth_factors(Values{1, 1, 1}, Values{1, 4, 16}, 0.5f, false), (Values{2, 1, 0.5f}));
  // All of the spread, or none of it, goes to the weights.
  EXPECT_EQ(smooth_factors(Values{1, 4, 8}, Values{1, 2, 32}, 1, false), (Values{0.25f, 1, 2}));
  EXPECT_EQ(smooth_factors(Values{1, 4, 8}, Values{1, 2, 32}, 0, false), (Values{2, 1, 0.0625f}));
}

TEST(SmoothFactors, EvenActivationsAndWeightsOut) {
  const Values activations = {3, 0.7f, 90, 5, 0.01f}, weights = {0.2f, 0.5f, 0.1f, 4, 0.3f};
  const Values factors = smooth_factors(activations, weights, 0.5f, false);
  const double first = activations[0] / factors[0] / (weights[0] * factors[0]);
  for (size_t j = 1; j < factors.size(); ++j) {
    const double ratio = activations[j] / factors[j] / (weights[j] * factors[j]);
    EXPECT_NEAR(ratio / first, 1, 1e-5) << j;  // a few roundings to F32
  }
}

TEST(SmoothFactors, PowersOfTwoAreTheNearest) {
  const Values activations = {3, 0.7f, 90, 5, 0.01f}, weights = {0.2f, 0.5f, 0.1f, 4, 0.3f};
  const Values exact = smooth_factors(activations, weights, 0.5f, false);
  const Values rounded = smooth_factors(activations, weights, 0.5f, true);
  for (size_t j = 0; j < exact.size(); ++j) {
    int exponent = 0;
    EXPECT_EQ(std::frexp(rounded[j], &exponent), 0.5f) << rounded[j] << " is no power of two";
    EXPECT_LE(std::abs(std::log2(rounded[j] / exact[j])), 0.5001f);
  }
  EXPECT_NE(exact, rounded);
}

TEST(SmoothFactors, DeadChannelsStay) {
  // A channel without activations, one without weights, and one without either.
  const Values factors =
      smooth_factors(Values{4, 0, 64, 16, 0}, Values{1, 5, 0, 1, 0}, 0.5f, false);
  EXPECT_EQ(factors[1], 1);
  EXPECT_EQ(factors[2], 1);
  EXPECT_EQ(factors[4], 1);
  EXPECT_EQ(factors[3] / factors[0], 2);
  EXPECT_EQ(smooth_factors(Values{0, 0}, Values{1, 0}, 0.5f, true), (Values{1, 1}));
  EXPECT_TRUE(smooth_factors({}, {}, 0.5f, true).empty());
}

TEST(SmoothFactors, ExtremeRatiosAreBounded) {
  const Values activations = {1e-38f, 1, 1, 3e38f}, weights = {3e38f, 1, 1, 1e-38f};
  for (const bool powers : {false, true}) {
    const Values factors = smooth_factors(activations, weights, 0.5f, powers);
    EXPECT_EQ(factors, (Values{1.0f / 4096, 1, 1, 4096}));
    for (const float factor : factors) EXPECT_TRUE(std::isfinite(1 / factor));
  }
}

TEST(SmoothFactors, NoNumbersAreDeadChannels) {
  EXPECT_EQ(smooth_factors(Values{NAN, 4}, Values{1, 1}, 0.5f, false), (Values{1, 1}));
}

TEST(SmoothFactors, CountsHaveToAgree) {
  const std::string message = error_of([] {
    smooth_factors(Values{1, 2}, Values{1, 2, 3}, 0.5f, false);
  });
  EXPECT_NE(message.find("2 channels of activations, 3 of weights"), std::string::npos) << message;
}

}  // namespace
}  // namespace octet::test
