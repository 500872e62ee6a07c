// What bitsandbytes says about a weight of 4 bits: the JSON text in the tensor
// <module>.weight.quant_state.bitsandbytes__nf4 (or __fp4).
#pragma once

#include <cstdint>
#include <string>

#include "formats/json.h"

namespace octet::weights {

struct Nf4State {
  std::string quant_type;  // "nf4" or "fp4"; the values are those of the code book in the file
  int64_t block = 0;       // consecutive elements of the flattened weight that share an absmax
  int64_t rows = 0, k = 0;
  // Double quantisation: the absmax values are bytes, in blocks of their own.
  int64_t nested_block = 0;  // 0 without
  float nested_offset = 0;
};

// Throws Error, beginning with `what`, for a field that is missing or of the wrong type.
Nf4State parse_nf4_state(const nlohmann::json& root, const std::string& what);

}  // namespace octet::weights
