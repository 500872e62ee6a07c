#include "weights/lora/lora_names.h"

#include <algorithm>

namespace octet::weights {
namespace {

struct Ending {
  std::string_view text;
  LoraRole role;
};
constexpr Ending kEndings[] = {
    {".lora_A.weight", LoraRole::down},
    {".lora_B.weight", LoraRole::up},
    {".lora_A.default.weight", LoraRole::down},
    {".lora_B.default.weight", LoraRole::up},
    {".lora_down.weight", LoraRole::down},
    {".lora_up.weight", LoraRole::up},
    {".lora.down.weight", LoraRole::down},
    {".lora.up.weight", LoraRole::up},
    {".alpha", LoraRole::alpha},
    {".diff", LoraRole::difference},
};

constexpr std::string_view kPeft = "base_model.model.";

struct Component {
  std::string_view name;
  NamedNetwork network;
};
constexpr Component kComponents[] = {
    {"unconditional_transformer", NamedNetwork::unconditional},
    {"uncond_transformer", NamedNetwork::unconditional},
    {"unconditional", NamedNetwork::unconditional},
    {"uncond", NamedNetwork::unconditional},
    {"conditional_transformer", NamedNetwork::conditional},
    {"cond_transformer", NamedNetwork::conditional},
    {"conditional", NamedNetwork::conditional},
    {"cond", NamedNetwork::conditional},
    {"transformer", NamedNetwork::none},
    {"diffusion_model", NamedNetwork::none},
    {"model.diffusion_model", NamedNetwork::none},
};

// Before modules whose dots have become underscores.
constexpr std::string_view kFlatPrefixes[] = {"lora_unet_", "lora_transformer_", "lycoris_"};

struct Method {
  std::string_view mark;
  const char* name;
};
constexpr Method kOtherMethods[] = {
    {".dora_scale", "DoRA"},
    {".lora_magnitude_vector", "DoRA"},
    {".lokr_", "LoKr"},
    {".hada_", "LoHa"},
    {".oft_", "OFT"},
    {".boft_", "BOFT"},
    {".lora_mid.", "LoRA with a Tucker core"},
};

std::string flattened(std::string name) {
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

}  // namespace

std::optional<LoraName> parse_lora_name(std::string_view name) {
  const auto ending = std::find_if(std::begin(kEndings), std::end(kEndings),
                                   [&](const Ending& each) { return name.ends_with(each.text); });
  if (ending == std::end(kEndings)) return std::nullopt;
  LoraName parsed;
  parsed.role = ending->role;
  std::string_view rest = name.substr(0, name.size() - ending->text.size());
  parsed.base = rest;
  for (const std::string_view prefix : kFlatPrefixes) {
    if (!rest.starts_with(prefix)) continue;
    parsed.flat = true;
    parsed.module = rest.substr(prefix.size());
    return parsed;
  }
  if (rest.starts_with(kPeft)) rest.remove_prefix(kPeft.size());
  for (const auto& [component, network] : kComponents) {
    if (!rest.starts_with(component) || !rest.substr(component.size()).starts_with('.')) continue;
    parsed.component = component;
    parsed.network = network;
    rest.remove_prefix(component.size() + 1);
    break;
  }
  parsed.module = rest;
  return parsed;
}

const char* other_method_of(std::string_view name) {
  for (const auto& [mark, method] : kOtherMethods) {
    if (name.find(mark) != name.npos) return method;
  }
  return nullptr;
}

LoraModules::LoraModules(std::span<const nn::LinearSpec> linears) {
  for (size_t i = 0; i < linears.size(); ++i) {
    for (const auto& layout : linears[i].layouts) {
      int64_t first = 0;
      for (const auto& part : layout) {
        modules_.insert({part.name, {part.name, i, first, part.rows, linears[i].k}});
        first += part.rows;
      }
    }
  }
  for (const auto& [name, module] : modules_) flat_.emplace(flattened(name), &module);
}

const LoraModule* LoraModules::find(const std::string& name) const {
  const auto found = modules_.find(name);
  return found == modules_.end() ? nullptr : &found->second;
}

std::vector<const LoraModule*> LoraModules::named(const LoraName& name) const {
  std::vector<const LoraModule*> found;
  if (name.flat) {
    const auto [begin, end] = flat_.equal_range(name.module);
    for (auto at = begin; at != end; ++at) found.push_back(at->second);
  } else if (const LoraModule* module = find(name.module)) {
    found.push_back(module);
  }
  return found;
}

}  // namespace octet::weights
