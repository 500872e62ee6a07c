// What was compared, as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "octet/compare.h"

namespace octet::api {

nlohmann::ordered_json json_of(const CompareReport& report);
nlohmann::ordered_json json_of(const Statistic& statistic);

}  // namespace octet::api
