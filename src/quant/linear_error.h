// How far a linear's output in INT8 is from its output in floating point, by each recipe.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "quant/activations.h"
#include "quant/recipe.h"
#include "quant/weight_rows.h"

namespace octet::quant {

struct Place {
  int64_t index = 0;
  double value = 0;
};

// NRMSE: the root of the squared error of all outputs over their squares, against F32.
struct LinearError {
  std::string module;
  int64_t n = 0, k = 0;
  double rowwise = 0, smoothquant = 0, convrot = 0;
  double unquantized = 0;            // in BF16, which is what protection costs
  std::vector<Place> worst_rows;     // output channels, with their share of the squared error
  std::vector<Place> worst_columns;  // input channels, with their reach over the median's

  double of(Recipe::Kind kind) const;
};

struct ErrorOptions {
  Recipe recipe;  // whose rows are looked at; its alpha and group hold for the others, too
  bool clip = true;
  ChunkLimit limit;
};

// The very path of the engine: rows and weights quantized, packed and multiplied by the backend.
// `smooth` [k] are the factors of smoothquant.
LinearError measure_error(Backend& backend, ThreadPool& pool, const std::string& module,
                          const WeightRows& rows, const LinearInputs& inputs,
                          std::span<const float> smooth, const ErrorOptions& options);

}  // namespace octet::quant
