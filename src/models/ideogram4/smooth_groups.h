// Which activations of a transformer can be made smaller, and where that is paid back.
#pragma once

#include <vector>

#include "models/ideogram4/config.h"
#include "quant/smoothing.h"

namespace octet::ideogram4 {

// Names are those of the fused layout.
std::vector<quant::SmoothGroup> smooth_groups(const DitConfig& config);

}  // namespace octet::ideogram4
