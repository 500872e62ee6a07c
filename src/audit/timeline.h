// Where the time went, along the trace.
#pragma once

#include "audit/work_list.h"
#include "octet/tools/audit.h"

namespace octet::audit {

inline constexpr size_t kTimelinePieces = 120;

// Empty where nothing has a time.
AuditTimeline timeline_of(const WorkList& list);

}  // namespace octet::audit
