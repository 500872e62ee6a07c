// How linears are quantized, and the dialects of output files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/export.h"
#include "octet/words.h"

namespace octet {

// How the large linears of a model are quantized.
struct Recipe {
  enum class Kind : uint8_t {
    rowwise,      // weights as they are
    smoothquant,  // outlier channels of activations scaled down, those of weights up
    convrot,      // both rotated within groups of channels
  };
  Kind kind = Kind::rowwise;
  float alpha = 0.5f;   // for smoothquant: how much of the range moves to the weights
  int64_t group = 256;  // for convrot

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

// Which linears stay in floating point.
struct Protection {
  int64_t worst = 0;                  // this many in each network, those with the largest error
  std::vector<std::string> patterns;  // names, with * for any text

  bool operator==(const Protection&) const = default;
};

// "none", "auto:17", or names separated by commas; throws InvalidRequest for anything else.
OCTET_API Protection parse_protection(const std::string& text);
OCTET_API std::string to_string(const Protection& protection);

// comfyui: one file per network. transformerlab: one file for all of them.
enum class OutputDialect : uint8_t { comfyui, transformerlab };
template <>
struct Words<OutputDialect> {
  static constexpr Word<OutputDialect> list[] = {{OutputDialect::comfyui, "comfyui"},
                                                 {OutputDialect::transformerlab, "transformerlab"}};
};

}  // namespace octet
