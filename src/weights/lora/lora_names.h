// The names of tensors in LoRA files, as trainers write them, and the modules of a model that they
// mean.
//
//   diffusers   transformer.layers.0.attention.to_q.lora_A.weight
//   PEFT        base_model.model.layers.0.attention.to_q.lora_A.default.weight
//   ComfyUI     diffusion_model.layers.0.attention.qkv.lora_down.weight, also .alpha and .diff
//   kohya       lora_unet_layers_0_attention_qkv.lora_down.weight
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nn/weights.h"

namespace octet::weights {

enum class LoraRole {
  down,        // A [rank, k]
  up,          // B [rows, rank]
  alpha,       // one number
  difference,  // of whole weights, [rows, k]
};

// What one of a model's networks is called, in files and by users.
struct NetworkNames {
  std::string_view name;
  std::span<const std::string_view> aliases;
};

// The number of the network with this name or alias.
std::optional<size_t> find_network(std::span<const NetworkNames> networks, std::string_view name);

struct LoraName {
  std::string base;       // the name without its role: what the tensors of one module share
  std::string component;  // the prefix of the module, without its dot: "transformer"
  std::string module;     // "layers.0.attention.qkv", or with underscores where `flat`
  bool flat = false;
  std::optional<size_t> network;  // that the component names
  LoraRole role = LoraRole::down;
};

// Nothing when the end of the name is not that of a LoRA's tensor.
std::optional<LoraName> parse_lora_name(std::string_view name,
                                        std::span<const NetworkNames> networks);

// "DoRA", "LoKr", ...: another way to change weights that the tensor belongs to; nullptr for none.
const char* other_method_of(std::string_view name);

// A module of a model: rows [first, first + rows) of one of its linears, by one of its layouts.
struct LoraModule {
  std::string name;
  size_t linear = 0;
  int64_t first = 0, rows = 0, k = 0;
};

class LoraModules {
 public:
  explicit LoraModules(std::span<const nn::LinearSpec> linears);
  LoraModules(LoraModules&&) = default;
  LoraModules& operator=(LoraModules&&) = default;

  const LoraModule* find(const std::string& name) const;  // nullptr when absent
  // Those that the name of a LoRA may mean. More than one only where underscores for dots make them
  // equal.
  std::vector<const LoraModule*> named(const LoraName& name) const;

 private:
  std::map<std::string, LoraModule> modules_;
  std::multimap<std::string, const LoraModule*> flat_;  // looks at modules_
};

}  // namespace octet::weights
