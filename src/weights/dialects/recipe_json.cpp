#include "weights/dialects/recipe_json.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/regular_file.h"

namespace octet::weights {
namespace {

using nlohmann::json;

class RecipeFields {
 public:
  RecipeFields(const json& root, const std::string& what) : root_(root), what_(what) {
    check(root.is_object(), "{}: is {}, expected an object", what, describe(root));
  }

  StoredRecipe parse() {
    StoredRecipe recipe;
    if (const json* value = field("format")) {
      if (value->is_string()) recipe.format = value->get<std::string>();
      ours_ = recipe.format.starts_with("octet");
    }
    if (const json* value = field("alpha")) {
      const bool good = value->is_number() && value->get<double>() >= 0 && *value <= 1;
      if (accept(good, "alpha", *value, "a number from 0 to 1")) recipe.alpha = value->get<float>();
    }
    if (const json* value = field("smooth")) {
      if (value->is_string()) recipe.smooth = smooth_direction_named(value->get<std::string>());
      accept(recipe.smooth.has_value(), "smooth", *value, "\"divide\" or \"multiply\"");
    }
    if (const json* value = field("protected")) {
      const bool good = value->is_array() && std::ranges::all_of(*value, [](const json& name) {
                          return name.is_string();
                        });
      if (accept(good, "protected", *value, "an array of names")) {
        recipe.protected_modules = value->get<std::vector<std::string>>();
      }
    }
    return recipe;
  }

 private:
  const json* field(const char* key) const {
    const auto found = root_.find(key);
    return found == root_.end() ? nullptr : &*found;
  }

  bool accept(bool good, const char* key, const json& value, const char* expected) const {
    check(good || !ours_, "{}: \"{}\" is {}, expected {}", what_, key, describe(value), expected);
    return good;
  }

  const json& root_;
  const std::string& what_;
  bool ours_ = false;
};

}  // namespace

std::optional<SmoothDirection> smooth_direction_named(const std::string& name) {
  if (name == "divide") return SmoothDirection::divide;
  if (name == "multiply") return SmoothDirection::multiply;
  return std::nullopt;
}

StoredRecipe parse_recipe(const json& root, const std::string& what) {
  return RecipeFields(root, what).parse();
}

std::optional<StoredRecipe> read_recipe_beside(const std::string& path) {
  const auto recipe = std::filesystem::path(path).parent_path() / "recipe.json";
  if (!is_file_there(recipe.string())) return std::nullopt;
  const MappedFile file(recipe.string());
  return file.read([&](std::span<const std::byte> bytes) {
    check(bytes.size() <= kMaxRecipeBytes,
          "{}: is {} bytes long, above the limit of {} for recipes", recipe.string(), bytes.size(),
          kMaxRecipeBytes);
    return parse_recipe(
        parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, recipe.string()),
        recipe.string());
  });
}

}  // namespace octet::weights
