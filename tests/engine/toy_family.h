// A family that no line under src/ knows: one network, a plain text as prompt, names and widths of
// its own. What works with it works with the next model.
#pragma once

#include <cstdint>
#include <string>

#include "models/family.h"

namespace octet::test {

const models::Family& toy_family();

// A model of random weights: model_index.json, and a folder for each part.
void write_toy_model(const std::string& folder, uint64_t seed = 1);

}  // namespace octet::test
