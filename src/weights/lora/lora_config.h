// What a LoRA was trained with, if its file says so besides the tensors: diffusers' metadata
// entry "lora_adapter_metadata", or the adapter_config.json beside PEFT's
// adapter_model.safetensors.
#pragma once

#include <cstdint>
#include <optional>

#include "formats/checkpoint.h"
#include "weights/lora/lora_names.h"

namespace octet::weights {

class LoraConfig {
 public:
  // Throws Error for one that is not JSON, or says that the file is more than a LoRA.
  explicit LoraConfig(const Checkpoint& file);

  // What the product of a module's matrices is multiplied by: alpha / rank, or alpha / sqrt(rank)
  // in a rank-stabilised LoRA. Nothing when the configuration does not say.
  std::optional<double> factor(const LoraName& name, int64_t rank) const;

 private:
  // The entry of the configuration for a component of a pipeline; nullptr when absent.
  const nlohmann::json* entry(const LoraName& name, const char* key) const;
  std::optional<double> alpha(const LoraName& name) const;

  std::string what_;     // for messages
  nlohmann::json root_;  // an object; empty when there is no configuration
};

}  // namespace octet::weights
