#include "quant/smoothing.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace octet::quant {

std::vector<float> smooth_factors(std::span<const float> activations,
                                  std::span<const float> weights, float alpha, bool powers_of_two) {
  check(activations.size() == weights.size(),
        "smoothing: {} channels of activations, {} of weights", activations.size(), weights.size());
  // Far beyond what any layer needs, and small enough for sums of two in every float type.
  constexpr double kMostExponent = 12;
  std::vector<double> exponents;  // of two
  std::vector<double> alive;
  for (size_t j = 0; j < weights.size(); ++j) {
    if (!(activations[j] > 0) || !(weights[j] > 0)) {
      exponents.push_back(NAN);
      continue;
    }
    exponents.push_back(alpha * std::log2(static_cast<double>(activations[j])) -
                        (1 - static_cast<double>(alpha)) *
                            std::log2(static_cast<double>(weights[j])));
    alive.push_back(exponents.back());
  }
  std::vector<float> factors(weights.size(), 1.0f);
  if (alive.empty()) return factors;
  // A factor that all channels share changes nothing: the middle one becomes 1.
  const auto middle = alive.begin() + static_cast<std::ptrdiff_t>(alive.size() / 2);
  std::nth_element(alive.begin(), middle, alive.end());
  for (size_t j = 0; j < factors.size(); ++j) {
    if (std::isnan(exponents[j])) continue;
    double exponent = std::clamp(exponents[j] - *middle, -kMostExponent, kMostExponent);
    if (powers_of_two) exponent = std::nearbyint(exponent);
    factors[j] = static_cast<float>(std::exp2(exponent));
  }
  return factors;
}

}  // namespace octet::quant
