// The checks of a caption that is JSON already.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "octet/caption.h"

namespace octet::pipeline {

void check_rules(const nlohmann::ordered_json& caption, std::vector<CaptionFinding>& findings);

}  // namespace octet::pipeline
