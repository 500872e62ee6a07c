// The way that networks run, as predict::step_time() calls it.
#pragma once

#include <string_view>

#include "octet/model_options.h"

namespace octet::measure {

// Empty: it does not know it.
std::string_view planned_path(const ModelOptions& options);

}  // namespace octet::measure
