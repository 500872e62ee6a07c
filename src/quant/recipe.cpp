#include "quant/recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "base/invalid_request.h"
#include "formats/text.h"
#include "tensor/quantized.h"

namespace octet {
namespace {

constexpr int64_t kLargestGroup = 1024;

template <class T>
bool parse_number(std::string_view text, T& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool is_group(int64_t group) {
  if (group < 4 || group > kLargestGroup) return false;
  int64_t power = 4;
  while (power < group) power *= 4;
  return power == group;
}

// `*` matches any text, even an empty one. Texts between two stars are taken where they come first:
// a later place leaves less for the rest.
bool fits_pattern(std::string_view pattern, std::string_view name) {
  size_t star = pattern.find('*');
  if (star == pattern.npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  name.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  while ((star = pattern.find('*')) != pattern.npos) {
    const size_t at = name.find(pattern.substr(0, star));
    if (at == name.npos) return false;
    name.remove_prefix(at + star);
    pattern.remove_prefix(star + 1);
  }
  return name.ends_with(pattern);
}

}  // namespace

Recipe quant::recipe_from(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string_view name = std::string_view(text).substr(0, colon);
  const std::string_view number =
      colon == text.npos ? std::string_view() : std::string_view(text).substr(colon + 1);
  const auto kind = from_word<Recipe::Kind>(name);
  check_value(kind.has_value(), "recipe",
              "recipe: {} is unknown, expected rowwise, smoothquant[:alpha] or convrot[:group]",
              in_quotes(text));
  Recipe recipe;
  recipe.kind = *kind;
  if (kind == Recipe::Kind::rowwise) {
    check_value(colon == text.npos, "recipe", "recipe: {} takes no number; expected rowwise",
                in_quotes(text));
  } else if (kind == Recipe::Kind::smoothquant) {
    const bool fits =
        colon == text.npos || (parse_number(number, recipe.alpha) && std::isfinite(recipe.alpha) &&
                               recipe.alpha >= 0 && recipe.alpha <= 1);
    check_value(fits, "recipe",
                "recipe: {}: expected a number from 0 to 1 after the colon; for example "
                "smoothquant:0.5",
                in_quotes(text));
  } else {
    const bool fits =
        colon == text.npos || (parse_number(number, recipe.group) && is_group(recipe.group));
    check_value(fits, "recipe",
                "recipe: {}: expected a group of 4, 16, 64, 256 or {} after the colon",
                in_quotes(text), kLargestGroup);
  }
  return recipe;
}

std::string quant::text_of(const Recipe& recipe) {
  const char* const word = word_of(recipe.kind);
  switch (recipe.kind) {
    case Recipe::Kind::smoothquant: return fmt::format("{}:{}", word, recipe.alpha);
    case Recipe::Kind::convrot: return fmt::format("{}:{}", word, recipe.group);
    default: return word;
  }
}

Protection quant::protection_from(const std::string& text) {
  Protection protection;
  if (text.empty() || text == "none") return protection;
  constexpr std::string_view kAuto = "auto:";
  if (text.starts_with(kAuto)) {
    const bool fits = parse_number(std::string_view(text).substr(kAuto.size()), protection.worst) &&
                      protection.worst >= 0;
    check_value(fits, "protect",
                "protect: {}: expected a count after the colon; for example auto:17",
                in_quotes(text));
    return protection;
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    check_value(end > begin, "protect",
                "protect: {} has an empty name; expected none, auto:N or names of linears",
                in_quotes(text));
    protection.patterns.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return protection;
}

std::string quant::text_of(const Protection& protection) {
  if (protection.worst > 0) return fmt::format("auto:{}", protection.worst);
  if (protection.patterns.empty()) return "none";
  return fmt::format("{}", fmt::join(protection.patterns, ","));
}

namespace quant {

int64_t group_for(const Recipe& recipe, int64_t k) {
  return recipe.kind == Recipe::Kind::convrot ? rotation_group(recipe.group, k) : 0;
}

bool matches(const Protection& protection, const std::string& module) {
  return std::ranges::any_of(protection.patterns, [&](const std::string& pattern) {
    return fits_pattern(pattern, module);
  });
}

std::span<const float> clip_ratios(bool clip) {
  // Below three quarters clipping always loses at 8 bits; what it wins lies near the end.
  static constexpr float kRatios[] = {1, 0.975f, 0.95f, 0.925f, 0.9f, 0.85f, 0.8f, 0.75f};
  return std::span(kRatios).first(clip ? std::size(kRatios) : 1);
}

}  // namespace quant
}  // namespace octet
