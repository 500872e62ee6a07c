// How each linear ran: its product, and what was done to its weight and activations before.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "audit/work_list.h"
#include "octet/tools/audit.h"

namespace octet::audit {

// Why it cannot be told how a linear ran.
enum class Doubt : uint8_t { none, cast_before, compiled, no_type, mixed };

// One call of a linear.
struct LinearCall {
  uint32_t work = 0;            // of WorkList::works(): its product
  int64_t m = 0, n = 0, k = 0;  // 0: not told
  AuditVerdict verdict = AuditVerdict::unclear;
  Doubt doubt = Doubt::none;
  ScalarType stored = ScalarType::unknown;  // of a weight that was widened
  int64_t calls = 1;                        // of files that only have sums
  double gemm_us = 0, dequantize_us = 0, quantize_us = 0;
};

// Finds the linears and, on the way, gives conversions of weights and activations their class:
// in `list`, copies and arithmetic become dequantize_weight and quantize_activation.
std::vector<LinearCall> find_linears(WorkList& list);

// In files that only have sums, which tell no order: kernels that do nothing but widen weights
// speak for as many products in floating point as they were called.
std::vector<LinearCall> find_linears_in_sums(const WorkList& list);

// How a product ran, by its class alone, and one whose weight was widened.
AuditVerdict verdict_of_product(WorkClass work);
AuditVerdict verdict_of_widened(ScalarType stored);

}  // namespace octet::audit
