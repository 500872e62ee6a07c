// What `octet quantize` is asked to do to the large linears of a model.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/tensor_info.h"

namespace octet::quant {

using octet::to_string;  // of shapes: the functions below are further ones, and must not hide it

struct Recipe {
  enum class Kind : uint8_t {
    rowwise,      // weights as they are
    smoothquant,  // channels of activations made smaller, those of weights larger
    convrot,      // both rotated within groups of channels
  };
  Kind kind = Kind::rowwise;
  float alpha = 0.5f;   // of smoothquant: how much of the spread goes to the weights
  int64_t group = 256;  // of convrot

  bool operator==(const Recipe&) const = default;
};

// "rowwise", "smoothquant", "smoothquant:0.6", "convrot", "convrot:64".
Recipe parse_recipe(const std::string& text);
std::string to_string(const Recipe& recipe);

// The group in which rows of k values are rotated: the recipe's, or the largest smaller power of 4
// that divides k; 0 when none does.
int64_t group_for(const Recipe& recipe, int64_t k);

// Which linears stay in floating point.
struct Protection {
  int64_t worst = 0;                  // so many, those with the largest error
  std::vector<std::string> patterns;  // names, with * for any text

  bool matches(const std::string& module) const;
};

// "none", "auto:17", or names separated by commas.
Protection parse_protection(const std::string& text);
std::string to_string(const Protection& protection);

// Shares of a row's largest magnitude at which its scale is tried; 1 alone without clipping.
std::span<const float> clip_ratios(bool clip);

}  // namespace octet::quant
