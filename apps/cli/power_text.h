// What a device drew, for people and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "octet/tools/power_use.h"

namespace octet::cli {

nlohmann::ordered_json power_json(const PowerUse& power);  // null where it is unknown
// "612 W of at most 700 ...", a line; nothing where it is unknown.
std::string power_line(const PowerUse& power);

}  // namespace octet::cli
