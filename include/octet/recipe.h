// How linears become INT8, and how files say it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/export.h"
#include "octet/words.h"

namespace octet {

// What is done to the large linears of a model.
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
template <>
struct Words<Recipe::Kind> {
  static constexpr Word<Recipe::Kind> list[] = {{Recipe::Kind::rowwise, "rowwise"},
                                                {Recipe::Kind::smoothquant, "smoothquant"},
                                                {Recipe::Kind::convrot, "convrot"}};
};

// "rowwise", "smoothquant", "smoothquant:0.6", "convrot", "convrot:64"; throws InvalidRequest for
// anything else.
OCTET_API Recipe parse_recipe(const std::string& text);
OCTET_API std::string to_string(const Recipe& recipe);

// Which of them stay in floating point.
struct Protection {
  int64_t worst = 0;                  // so many of each network, those with the largest error
  std::vector<std::string> patterns;  // names, with * for any text

  bool operator==(const Protection&) const = default;
};

// "none", "auto:17", or names separated by commas; throws InvalidRequest for anything else.
OCTET_API Protection parse_protection(const std::string& text);
OCTET_API std::string to_string(const Protection& protection);

// comfyui: one file for each network. transformerlab: one for all of them.
enum class OutputDialect : uint8_t { comfyui, transformerlab };
template <>
struct Words<OutputDialect> {
  static constexpr Word<OutputDialect> list[] = {{OutputDialect::comfyui, "comfyui"},
                                                 {OutputDialect::transformerlab, "transformerlab"}};
};

}  // namespace octet
