// What was compared, as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "octet/tools/compare.h"

namespace octet::report {

nlohmann::ordered_json json_of(const CompareReport& report);
nlohmann::ordered_json json_of(const Statistic& statistic);

}  // namespace octet::report
