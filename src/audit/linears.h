// How each linear ran: its product, and what was done to its weight and activations before.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "audit/work_list.h"
#include "octet/tools/audit.h"

namespace octet::audit {

// Why it cannot be told how a linear ran.
enum class Doubt : uint8_t {
  none,
  cast_before,  // something was cast, and no operands were recorded
  cast_beside,  // in sums, which have no order: as much was cast as was multiplied
  compiled,     // what was compiled hides what it does
  no_type,      // nothing tells the type of the product
  size_alone,   // a tensor of the weight's size was widened, which may be another one
  looked_up,    // something was looked up in a table, by codes perhaps
  few_pairs,    // a weight was widened, but so rarely that it may be chance
  kept,         // weights were widened once, and the same linears went on without
  mixed,        // some ran natively, others did not, and nothing tells whether that was intended
  apart,        // the same, and both kinds ran one after the other, as two models do
  unknown_kernels,
  frequent_unknown,  // without operands, a kernel that may widen weights ran as often as linears
};

// One call of a linear.
struct LinearCall {
  uint32_t work = 0;            // of WorkList::works(): its product
  int64_t m = 0, n = 0, k = 0;  // 0: not told
  int64_t batch = 1;
  AuditVerdict verdict = AuditVerdict::unclear;
  Doubt doubt = Doubt::none;
  // Of a weight that was widened: its type and layout, the works that did it, unless they count for
  // another call, and whether it can be no other tensor.
  bool is_widened = false;
  ScalarType stored = ScalarType::unknown;
  std::vector<int64_t> stored_dims;
  std::vector<uint32_t> widening;
  bool sure = false;
  size_t product = 0;         // of the walk, counted from 0
  size_t widened_before = 0;  // the product that came next when its weight was widened
  bool is_foreign = false;    // of another layer or process, or combined with as many numbers
  bool shares = false;        // a tensor of several weights
  bool is_used = false;       // something else used what was widened, or a tensor like it
  bool is_refuted = false;    // the same, of its very dims
  bool may_be_used = false;   // something took tensors that nobody recorded
  // With scales, without which 8-bit integers are no weight; other codes need none.
  bool is_scaled = false;
  bool is_answer = false;      // went to the host right away
  bool is_gradient = false;    // in a backward pass: no linear
  bool is_loose_part = false;  // of a tensor of which other parts were not used
  int64_t calls = 1;           // of files that only have sums
  double gemm_us = 0, dequantize_us = 0, quantize_us = 0;
};

// Finds the linears and, on the way, gives conversions of weights and activations their class:
// in `list`, copies and arithmetic become dequantize_weight and quantize_activation.
std::vector<LinearCall> find_linears(WorkList& list);

// In files that only have sums, which tell no order: kernels that do nothing but widen weights
// speak for as many products in floating point as they were called.
std::vector<LinearCall> find_linears_in_sums(const WorkList& list);

// In sums of the host's ops: as many products as something was cast, or run by compiled code, are
// unclear; unless that is fewer than half of them, as casts of norms and rotations are.
void doubt_by_casts(const WorkList& list, std::vector<LinearCall>& calls);

// How a product ran, by its class alone, and one whose weight was widened.
AuditVerdict verdict_of_product(WorkClass work);
AuditVerdict verdict_of_widened(ScalarType stored);

constexpr bool is_native(AuditVerdict verdict) {
  return verdict == AuditVerdict::native_int8 || verdict == AuditVerdict::native_fp8 ||
         verdict == AuditVerdict::native_four_bit;
}
constexpr bool is_fake(AuditVerdict verdict) {
  return verdict == AuditVerdict::fake_int8 || verdict == AuditVerdict::fake_fp8 ||
         verdict == AuditVerdict::fake_four_bit;
}

}  // namespace octet::audit
