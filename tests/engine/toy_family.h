// A family that no line under src/ knows: one network, a plain text as prompt, names and widths of
// its own. What works with it works with the next model.
#pragma once

#include <cstdint>
#include <string>

#include "models/family.h"

namespace octet::test {

const models::Family& toy_family();  // no guidance: one branch
// The same network, evaluated twice in a guided step: with the prompt, and with a negative prompt.
const models::Family& negative_toy_family();
// And three times: without text as well.
const models::Family& three_branch_toy_family();

// A model of random weights: model_index.json, and a folder for each part.
void write_toy_model(const std::string& folder, uint64_t seed = 1,
                     const models::Family& family = toy_family());

}  // namespace octet::test
