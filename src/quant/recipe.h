// What the words of octet/recipe.h mean for a linear.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "octet/quantize.h"

namespace octet::quant {

// parse_recipe(), parse_protection() and to_string() of octet/recipe.h.
Recipe recipe_from(const std::string& text);
Protection protection_from(const std::string& text);
std::string text_of(const Recipe& recipe);
std::string text_of(const Protection& protection);

// The group in which rows of k values are rotated: the recipe's, or the largest smaller power of 4
// that divides k; 0 when none does.
int64_t group_for(const Recipe& recipe, int64_t k);

// Whether a module is protected by its name.
bool matches(const Protection& protection, const std::string& module);

// Shares of a row's largest magnitude at which its scale is tried; only 1 without clipping.
std::span<const float> clip_ratios(bool clip);

}  // namespace octet::quant
