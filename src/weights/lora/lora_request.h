// What a user asks for with --lora: FILE[:STRENGTH[:NETWORKS]].
#pragma once

#include <string>
#include <string_view>

namespace octet::weights {

// The networks of a model with two of them that a LoRA changes.
enum class LoraNetworks {
  as_named,  // by the names in the file; a file that names none changes the conditional one
  conditional,
  unconditional,
  both,
};

inline constexpr float kMaxLoraStrength = 100;

struct LoraRequest {
  std::string path;
  float strength = 1;  // finite, at most kMaxLoraStrength either way; 0 changes nothing
  LoraNetworks networks = LoraNetworks::as_named;
};

// "a.safetensors", "a.safetensors:0.8", "a.safetensors:-1:both", "a.safetensors:uncond". Networks
// are cond, uncond or both. What is read as strength and networks stands at the end and holds
// neither slash nor backslash, so a path may contain colons. Throws InvalidRequest for a strength
// that is not a number within bounds, and for an empty path.
LoraRequest parse_lora_request(std::string_view text);

// "as named", "cond", "uncond" or "both".
std::string_view name_of(LoraNetworks networks);

}  // namespace octet::weights
