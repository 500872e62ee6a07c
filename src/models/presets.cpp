#include "models/presets.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/regular_file.h"
#include "formats/text.h"
#include "models/config_fields.h"

namespace octet::models {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestName = 64;
constexpr size_t kMostPresets = 100;
// Far beyond what any model was trained with.
constexpr double kMostGuidance = 100, kMostMu = 20, kLeastStd = 1e-3, kMostStd = 20;

// One object of the file. Every key is known and, but for those with a default, there.
class PresetFields : public ConfigFields {
 public:
  PresetFields(const std::string& what, const nlohmann::json& object,
               std::initializer_list<std::string_view> required,
               std::initializer_list<std::string_view> optional)
      : ConfigFields(what, object) {
    for (const std::string_view key : required) {
      check(find(std::string(key).c_str()) != nullptr, "{}: has no {}", what, in_quotes(key));
    }
    std::set<std::string_view> known(required);
    known.insert(optional);
    for (const auto& [key, value] : object.items()) {
      check(known.contains(key), "{}: unknown key {}, expected {}", what, in_quotes(key),
            fmt::join(known, ", "));
      check(!value.is_null(), "{}: {} is null, expected a value", what, key);
    }
  }
};

bool is_name(std::string_view text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  return !text.empty() && text.size() <= kLongestName &&
         std::all_of(text.begin(), text.end(), is_plain);
}

Preset parse_preset(const nlohmann::json& object, const std::string& what) {
  const PresetFields fields(what, object, {"name", "steps", "guidance", "mu", "std"},
                            {"polish_guidance", "polish_steps"});
  Preset preset;
  const nlohmann::json& name = *fields.find("name");
  check(name.is_string() && is_name(name.get_ref<const std::string&>()),
        "{}: name is {}, expected at most {} letters, digits, - and _", what, describe(name),
        kLongestName);
  preset.name = name;
  preset.steps = static_cast<int>(fields.integer("steps", 0, 1, kMostSteps));
  const auto guidance_of = [&](const char* key) {
    return static_cast<float>(fields.number(key, 1, -kMostGuidance, kMostGuidance));
  };
  preset.guidance = guidance_of("guidance");
  check((fields.find("polish_guidance") == nullptr) == (fields.find("polish_steps") == nullptr),
        "{}: has one of polish_guidance and polish_steps, expected both or neither", what);
  preset.polish_guidance = guidance_of("polish_guidance");
  preset.polish_steps = static_cast<int>(fields.integer("polish_steps", 0, 0, preset.steps));
  preset.mu = fields.number("mu", 0, -kMostMu, kMostMu);
  preset.std = fields.number("std", 1, kLeastStd, kMostStd);
  return preset;
}

PictureDefaults read_defaults(const std::string& path, PictureSize size) {
  const nlohmann::json root = read_json_file(path);
  const PresetFields fields(path, root, {"presets"}, {"size"});
  const nlohmann::json& list = *fields.find("presets");
  check(list.is_array() && !list.empty() && list.size() <= kMostPresets,
        "{}: presets is {}, expected an array of 1 to {} objects", path, describe(list),
        kMostPresets);
  PictureDefaults defaults{.presets = {}, .size = size, .path = path};
  for (size_t i = 0; i < list.size(); ++i) {
    Preset preset = parse_preset(list[i], fmt::format("{}: preset {}", path, i + 1));
    const bool is_new =
        std::none_of(defaults.presets.begin(), defaults.presets.end(),
                     [&](const Preset& other) { return other.name == preset.name; });
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

}  // namespace

PictureDefaults defaults_of(const Family& family, std::initializer_list<std::string> models) {
  for (const std::string& model : models) {
    std::error_code ignored;
    const std::string path = (fs::path(model) / kPresetsFile).string();
    if (!model.empty() && fs::is_directory(model, ignored) && is_file_there(path)) {
      return read_defaults(path, family.usual_size);
    }
  }
  return {.presets = {family.presets.begin(), family.presets.end()},
          .size = family.usual_size,
          .path = ""};
}

PictureSize size_or_default(PictureSize asked, const PictureDefaults& defaults) {
  return asked == PictureSize() ? defaults.size : asked;
}

}  // namespace octet::models
