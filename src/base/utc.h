// The date of reports and measurements.
#pragma once

#include <string>

namespace octet {

std::string utc_now();  // "2025-01-31T12:00:00Z"

}  // namespace octet
