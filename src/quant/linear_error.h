// The errors of linears in INT8 (octet/quantize.h), by each recipe.
#pragma once

#include <span>
#include <string>

#include "octet/quantize.h"
#include "quant/activations.h"
#include "quant/weight_rows.h"

namespace octet::quant {

struct ErrorOptions {
  Recipe recipe;  // whose rows are looked at; its alpha and group hold for the others, too
  bool clip = true;
  ChunkLimit limit;
};

// The very path of the engine: rows and weights quantized, packed and multiplied by the backend.
// `smooth` [k] are the factors of smoothquant.
LinearError measure_error(Backend& backend, const std::string& module, const WeightRows& rows,
                          const LinearInputs& inputs, std::span<const float> smooth,
                          const ErrorOptions& options);

}  // namespace octet::quant
