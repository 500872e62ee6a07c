// What was compared, as JSON.
#pragma once

#include "octet/tools/compare.h"
#include "report/json.h"

namespace octet::report {

Json json_of(const CompareReport& report);
Json json_of(const Statistic& statistic);

}  // namespace octet::report
