// LoRAs as text.
#pragma once

#include <string>

#include "octet/model_options.h"
#include "octet/export.h"

namespace octet {

// "a.safetensors", "a.safetensors:0.8", "a.safetensors:-1:both", "a.safetensors:uncond". Networks
// are given by a name or an alias that some family knows ("conditional", "cond"), "all" or "both".
// Strength and networks come last and contain neither slash nor backslash, so a path may contain
// colons. Throws InvalidRequest for a strength that is not a number within bounds, and for an empty
// path.
OCTET_API Lora parse_lora(const std::string& text);

OCTET_API std::string to_string(const Lora& lora);  // "style.safetensors:0.8:cond"

}  // namespace octet
