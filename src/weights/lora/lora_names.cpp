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

// Before modules of a network, without saying which.
constexpr std::string_view kAnyNetwork[] = {"transformer", "diffusion_model",
                                            "model.diffusion_model"};

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
  std::ranges::replace(name, '.', '_');
  return name;
}

bool is_component(std::string_view name, std::string_view component) {
  return name.starts_with(component) && name.substr(component.size()).starts_with('.');
}

// The prefix of the module, and the network that it names.
std::string_view component_of(std::string_view name, std::span<const NetworkNames> networks,
                              std::optional<size_t>& network) {
  for (size_t i = 0; i < networks.size(); ++i) {
    network = i;
    if (is_component(name, networks[i].name)) return networks[i].name;
    for (const std::string_view alias : networks[i].aliases) {
      if (is_component(name, alias)) return alias;
    }
  }
  network.reset();
  for (const std::string_view component : kAnyNetwork) {
    if (is_component(name, component)) return component;
  }
  return "";
}

}  // namespace

std::optional<size_t> find_network(std::span<const NetworkNames> networks, std::string_view name) {
  for (size_t i = 0; i < networks.size(); ++i) {
    const auto& [own, aliases] = networks[i];
    if (name == own || std::ranges::find(aliases, name) != aliases.end()) return i;
  }
  return std::nullopt;
}

std::optional<LoraName> parse_lora_name(std::string_view name,
                                        std::span<const NetworkNames> networks) {
  const auto ending =
      std::ranges::find_if(kEndings, [&](const Ending& each) { return name.ends_with(each.text); });
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
  parsed.component = component_of(rest, networks, parsed.network);
  if (!parsed.component.empty()) rest.remove_prefix(parsed.component.size() + 1);
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
