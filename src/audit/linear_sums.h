// Linears in files that only have sums.
#pragma once

#include <vector>

#include "audit/linears.h"

namespace octet::audit {

// How a product ran, by its class alone.
AuditVerdict verdict_of_product(WorkClass work);
AuditVerdict verdict_of_widened(ScalarType stored);

// Such files tell no order: kernels that do nothing but widen weights speak for as many products in
// floating point as they were called.
std::vector<LinearCall> find_linears_in_sums(const WorkList& list);

}  // namespace octet::audit
