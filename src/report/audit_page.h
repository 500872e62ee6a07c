// Parts of the page of an audit.
#pragma once

#include <string>
#include <string_view>

#include "octet/tools/audit.h"

namespace octet::report {

// Each class of work has a colour: the name of the style's class for it, and the rules.
std::string colour_of(std::string_view key);
std::string colour_style();

// What ran when, as stacked bars with a legend; empty for a report without a timeline.
std::string timeline_section(const AuditReport& report);

}  // namespace octet::report
