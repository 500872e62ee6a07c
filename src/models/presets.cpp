#include "models/presets.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/regular_file.h"
#include "formats/text.h"

namespace octet::models {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestName = 64;
constexpr size_t kMostPresets = 100;

using Keys = std::set<std::string_view>;

// Every key is known and, but for those with a default, there.
void check_keys(const ConfigFields& fields, const nlohmann::json& object, const Keys& required,
                const Keys& optional) {
  for (const std::string_view key : required) {
    check(fields.find(std::string(key).c_str()) != nullptr, "{}: has no {}", fields.path(),
          in_quotes(key));
  }
  Keys known = required;
  known.insert(optional.begin(), optional.end());
  for (const auto& [key, value] : object.items()) {
    check(known.contains(key), "{}: unknown key {}, expected {}", fields.path(), in_quotes(key),
          fmt::join(known, ", "));
    check(!value.is_null(), "{}: {} is null, expected a value", fields.path(), key);
  }
}

bool is_name(std::string_view text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  return !text.empty() && text.size() <= kLongestName && std::ranges::all_of(text, is_plain);
}

Preset parse_preset(const nlohmann::json& object, const std::string& what, const PresetKeys& own) {
  const ConfigFields fields(what, object);
  Keys required = {"name", "steps", "guidance"};
  required.insert(own.required.begin(), own.required.end());
  check_keys(fields, object, required, {own.optional.begin(), own.optional.end()});
  Preset preset;
  const nlohmann::json& name = *fields.find("name");
  check(name.is_string() && is_name(name.get_ref<const std::string&>()),
        "{}: name is {}, expected at most {} letters, digits, - and _", what, describe(name),
        kLongestName);
  preset.name = name;
  preset.steps = static_cast<int>(fields.integer("steps", 0, 1, kMostSteps));
  preset.phases = {{preset.steps, guidance_in(fields, "guidance")}};
  if (own.read != nullptr) own.read(fields, preset);
  return preset;
}

PictureDefaults read_defaults(const std::string& path, const Family& family) {
  const nlohmann::json root = read_json_file(path);
  const ConfigFields fields(path, root);
  check_keys(fields, root, {"presets"}, {"size"});
  const nlohmann::json& list = *fields.find("presets");
  check(list.is_array() && !list.empty() && list.size() <= kMostPresets,
        "{}: presets is {}, expected an array of 1 to {} objects", path, describe(list),
        kMostPresets);
  const PictureSize size = family.usual_size;
  PictureDefaults defaults{.presets = {}, .size = size, .path = path};
  for (size_t i = 0; i < list.size(); ++i) {
    Preset preset =
        parse_preset(list[i], fmt::format("{}: preset {}", path, i + 1), family.preset_keys);
    const bool is_new = std::ranges::none_of(
        defaults.presets, [&](const Preset& other) { return other.name == preset.name; });
    check(is_new, "{}: two presets have the name {}, expected one", path, in_quotes(preset.name));
    defaults.presets.push_back(std::move(preset));
  }
  const auto sides =
      fields.integers("size", {size.width, size.height}, 2, 2, 1, int64_t{kLongestSide});
  check(sides[0] * sides[1] <= kMostPixels,
        "{}: size is {} x {}, expected at most {} pixels in all", path, sides[0], sides[1],
        kMostPixels);
  defaults.size = {static_cast<int>(sides[0]), static_cast<int>(sides[1])};
  return defaults;
}

PictureDefaults presets_of(const Family& family, std::initializer_list<std::string> models) {
  for (const std::string& model : models) {
    std::error_code ignored;
    const std::string path = (fs::path(model) / kPresetsFile).string();
    if (!model.empty() && fs::is_directory(model, ignored) && is_file_there(path)) {
      return read_defaults(path, family);
    }
  }
  return {.presets = {family.presets.begin(), family.presets.end()},
          .size = family.usual_size,
          .path = ""};
}

}  // namespace

float guidance_in(const ConfigFields& fields, const char* key) {
  return static_cast<float>(fields.number(key, 1, 0, kMostGuidance));
}

PictureDefaults defaults_of(const Family& family, std::initializer_list<std::string> models) {
  PictureDefaults defaults = presets_of(family, models);
  defaults.trained_for = trained_for(models);
  return defaults;
}

PictureSize size_or_default(PictureSize asked, const PictureDefaults& defaults) {
  return asked == PictureSize() ? defaults.size : asked;
}

}  // namespace octet::models
