// recipe.json, next to a checkpoint: how its INT8 weights were made.
//
//   {"format": "octet-w8a8", "alpha": 0.5, "smooth": "divide",
//    "protected": ["layers.3.feed_forward.w2"]}
//
// Fields that are unknown are ignored. Other tools write recipes too, whose fields may mean other
// things: only where the format begins with "octet" is a field of the wrong type an error; anywhere
// else such a field is ignored as well. Only its tensors decide what a file contains.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/json.h"

namespace octet::weights {

// What to do to activations with a stored SmoothQuant vector.
enum class SmoothDirection : uint8_t { divide, multiply };
std::optional<SmoothDirection> smooth_direction_named(const std::string& name);

struct StoredRecipe {
  std::string format;
  std::optional<float> alpha;  // of SmoothQuant, from 0 to 1
  std::optional<SmoothDirection> smooth;
  std::vector<std::string> protected_modules;  // kept in floating point
};

inline constexpr size_t kMaxRecipeBytes = 1'000'000;

// `what` begins the error sentence.
StoredRecipe parse_recipe(const nlohmann::json& root, const std::string& what);

// Of the folder in which the file `path` lies; nothing where there is none.
std::optional<StoredRecipe> read_recipe_beside(const std::string& path);

}  // namespace octet::weights
