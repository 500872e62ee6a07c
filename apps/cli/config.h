// The user's defaults, for flags that were not given. What comes from there is said.
#pragma once

#include "flags.h"

namespace octet::cli {

// --device, for every command that has it.
void use_configured_device(CommonFlags& flags);

// --model and --base; no model at all is wrong usage.
void use_configured_model(const CommonFlags& flags, ModelOptions& options);

}  // namespace octet::cli
