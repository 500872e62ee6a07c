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

// --- from how linears ran to one sentence

// Calls of large linears, by how they ran.
struct LinearCounts {
  int64_t native_int8 = 0, native_fp8 = 0, native_four_bit = 0, weight_only = 0;
  int64_t fake_int8 = 0, fake_fp8 = 0, fake_four_bit = 0;
  int64_t unquantized = 0, unclear = 0;
  // Of the unquantized: those of a size at which others ran natively. Some are protected on
  // purpose, many are a fallback.
  int64_t beside_native = 0;
  int64_t unsized = 0;  // likewise: those whose size is not told
  // What most of the products that were not native are in: "bf16", "fp32".
  std::string floating = "bf16";
  int64_t small = 0;             // that count for nothing
  Doubt doubt = Doubt::no_type;  // of most that are unclear

  int64_t native() const { return native_int8 + native_fp8 + native_four_bit; }
  int64_t fake() const { return fake_int8 + fake_fp8 + fake_four_bit; }
  int64_t all() const { return native() + fake() + weight_only + unquantized + unclear; }
};

constexpr bool is_native(AuditVerdict verdict) {
  return verdict == AuditVerdict::native_int8 || verdict == AuditVerdict::native_fp8 ||
         verdict == AuditVerdict::native_four_bit;
}

void count(LinearCounts& counts, AuditVerdict verdict, int64_t calls);

// Above this share of unquantized linears whose sisters ran natively, it is a fallback: the
// published recipes protect a tenth of the linears, at most a quarter of one kind.
inline constexpr double kMostProtected = 0.25;

AuditVerdict judge(const LinearCounts& counts);
std::string headline_of(AuditVerdict verdict, const LinearCounts& counts);

// Where there is nothing but a log.
AuditVerdict judge(const std::vector<LogFinding>& log);
std::string headline_of(AuditVerdict verdict, const std::vector<LogFinding>& log);

// "int8 weight dequantized, then a bf16 GEMM"
std::string how_it_ran(AuditVerdict verdict, ScalarType stored, const std::string& floating);

}  // namespace octet::audit
