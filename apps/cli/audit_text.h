// An audit as text for a terminal.
#pragma once

#include <string>

#include "flags.h"
#include "octet/tools/audit.h"

namespace octet::cli {

// The verdict first; nothing else for --quiet, all layers for --verbose.
std::string audit_text(const AuditReport& report, const CommonFlags& flags);

}  // namespace octet::cli
