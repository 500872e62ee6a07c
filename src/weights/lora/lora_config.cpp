#include "weights/lora/lora_config.h"

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/regular_file.h"
#include "formats/text.h"

namespace octet::weights {
namespace {

constexpr const char* kMetadataEntry = "lora_adapter_metadata";

double number(const nlohmann::json& value, const std::string& what, const std::string& key) {
  check(value.is_number() && std::isfinite(value.get<double>()),
        "{}: {} is {}, expected a finite number", what, Quoted{key}, describe(value));
  return value.get<double>();
}

// PEFT takes these as regular expressions at the end of a module's name. Trainers write plain
// names, with ^ before whole ones, and only those are understood.
bool ends_module(std::string_view pattern, std::string_view module) {
  if (pattern.starts_with('^')) return pattern.substr(1) == module;
  return module.ends_with(pattern) &&
         (module.size() == pattern.size() || module[module.size() - pattern.size() - 1] == '.');
}

}  // namespace

LoraConfig::LoraConfig(const Checkpoint& file) : root_(nlohmann::json::object()) {
  const auto found = file.metadata().find(kMetadataEntry);
  const std::filesystem::path path(file.path());
  const std::string beside = (path.parent_path() / "adapter_config.json").string();
  if (found != file.metadata().end()) {
    what_ = file.path() + ": metadata entry " + kMetadataEntry;
    root_ = parse_json(found->second, what_);
  } else if (path.filename() == "adapter_model.safetensors" && is_file_there(beside)) {
    what_ = beside;
    root_ = read_json_file(beside);
  }
  check(root_.is_object(), "{}: is {}, expected an object", what_, describe(root_));
  for (const auto& [key, value] : root_.items()) {
    check(!key.ends_with("use_dora") || value != true,
          "{}: says that this is a DoRA, which cannot be merged as a LoRA; merge it into the "
          "checkpoint with the program that trained it",
          what_);
  }
}

const nlohmann::json* LoraConfig::entry(const LoraName& name, const char* key) const {
  const auto found = root_.find(name.component.empty() ? key : name.component + "." + key);
  return found == root_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<double> LoraConfig::alpha(const LoraName& name) const {
  if (const nlohmann::json* patterns = entry(name, "alpha_pattern")) {
    check(patterns->is_object(), "{}: \"alpha_pattern\" is {}, expected an object", what_,
          describe(*patterns));
    for (const auto& [pattern, value] : patterns->items()) {
      check(pattern.find_first_of("*+?[](){}|$\\") == pattern.npos,
            "{}: {} of \"alpha_pattern\" is a regular expression, expected the name of a module",
            what_, Quoted{pattern});
      if (ends_module(pattern, name.module)) return number(value, what_, pattern);
    }
  }
  const nlohmann::json* alpha = entry(name, "lora_alpha");
  if (alpha == nullptr) return std::nullopt;
  return number(*alpha, what_, "lora_alpha");
}

std::optional<double> LoraConfig::factor(const LoraName& name, int64_t rank) const {
  const auto found = alpha(name);
  if (!found) return std::nullopt;
  const nlohmann::json* stabilised = entry(name, "use_rslora");
  const auto of_rank = static_cast<double>(rank);
  return *found / (stabilised != nullptr && *stabilised == true ? std::sqrt(of_rank) : of_rank);
}

}  // namespace octet::weights
