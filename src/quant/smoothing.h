// SmoothQuant: channels of activations are divided, and the columns of the weights behind them
// multiplied, by factors that even the two out.
//
// What divides the activations may stand before every quantization (a transform of the linear), or
// be folded into what makes the activations: the weight of a norm, or rows of another linear.
// Folded factors are powers of two, so that nothing is rounded by folding.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace octet::quant {

// Linears that see the same activations, and who makes these.
struct SmoothGroup {
  std::string inputs;                // the linear's name in the activation statistics
  std::vector<std::string> modules;  // whose columns are multiplied
  // Either a vector or rows [first_row, first_row + k) of a module are divided.
  std::string vector;
  std::string rows_of;
  int64_t first_row = 0;
};

// activation^alpha / weight^(1 - alpha) for each channel, of the largest magnitudes; around 1. Dead
// channels get 1. `powers_of_two`: rounded to such.
std::vector<float> smooth_factors(std::span<const float> activations,
                                  std::span<const float> weights, float alpha, bool powers_of_two);

}  // namespace octet::quant
