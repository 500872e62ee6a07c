#include <algorithm>
#include <array>
#include <string>

#include "audit/linears.h"

namespace octet::audit {
namespace {

// Calls of kernels that widen weights, or may.
struct WidenedSums {
  int64_t certain = 0, possible = 0;
  double certain_us = 0;
  ScalarType stored = ScalarType::unknown;  // of most
  int64_t most = 0;                         // calls of these
};

// Caches of keys and values are widened by the kernels that widen weights of the same type.
bool may_be_of_cache(const WorkList& list, const Work& work) {
  static constexpr std::array kCacheTypes = {"q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl"};
  const std::string& name = list.name(work);
  return list.library(work) == "HQQ" ||
         std::any_of(kCacheTypes.begin(), kCacheTypes.end(),
                     [&](const char* type) { return name.find(type) != name.npos; });
}

// An attention widens its keys and its values: whatever ran more often widened weights.
int64_t most_of_caches(const WorkList& list) {
  int64_t calls = 0;
  for (const Work& work : list.works()) {
    const bool attends = work.work == WorkClass::attention || list.is_softmax(work);
    if (attends) calls += 2 * list.calls(work);
  }
  return calls;
}

// What was written into caches as codes.
int64_t writes_to_caches(const WorkList& list) {
  int64_t calls = 0;
  for (const Work& work : list.works()) {
    const std::string& name = list.name(work);
    const bool writes =
        name.find("cpy_f32_q<") != name.npos || name.find("k_set_rows_quant<") != name.npos;
    if (writes) calls += list.calls(work);
  }
  return calls;
}

// A layer of an engine that takes a matrix of codes and is no product.
bool reads_codes(const WorkList& list, const Work& work) {
  const Signature* operands = list.signature(work);
  return operands != nullptr &&
         std::any_of(operands->begin(), operands->end(), [](const Operand& operand) {
           return is_code(operand.type) && operand.dims.size() > 1;
         });
}

// Bytes hold two codes, of which one is shifted to its place.
bool shifts_bytes(const std::string& kernel) {
  return kernel.find("rshift") != kernel.npos && kernel.find("unsigned char") != kernel.npos;
}

int64_t floating_calls(const WorkList& list) {
  int64_t calls = 0;
  for (const Work& work : list.works()) {
    if (verdict_of_product(work.work) == AuditVerdict::unquantized) calls += list.calls(work);
  }
  return calls;
}

WidenedSums widened_in(const WorkList& list) {
  WidenedSums sums;
  int64_t untyped = 0;
  int64_t of_caches = most_of_caches(list);
  // Where as many keys and values were written as codes, it were these that were widened.
  const bool has_caches = of_caches > 0 && writes_to_caches(list) >= of_caches;
  for (const Work& work : list.works()) {
    if (work.work == WorkClass::dequantize_weight) {
      const int64_t calls = list.calls(work);
      const int64_t possible = may_be_of_cache(list, work) ? std::min(of_caches, calls) : 0;
      const int64_t certain = calls - possible;
      of_caches -= possible;
      if (!has_caches) sums.possible += possible;
      if (certain <= 0) continue;
      sums.certain += certain;
      sums.certain_us += list.us(work) * static_cast<double>(certain) / static_cast<double>(calls);
      if (certain > sums.most) {
        sums.stored = work.type;
        sums.most = certain;
      }
    } else if (!is_gemm(work.work) && (may_widen(list.name(work)) || reads_codes(list, work))) {
      sums.possible += list.calls(work);
    } else if (casts_unknown_types(list.name(work))) {
      untyped += list.calls(work);
    } else if (shifts_bytes(list.name(work))) {
      sums.possible += list.calls(work);
    }
  }
  // Norms and rotations cast less often than linears multiply; one of these may be exempt.
  if (untyped + untyped / 8 >= floating_calls(list)) sums.possible += untyped;
  return sums;
}

// `calls` of a sum, with their share of its time.
LinearCall part_of(const LinearCall& sum, int64_t calls) {
  LinearCall part = sum;
  part.calls = calls;
  part.gemm_us = sum.gemm_us * static_cast<double>(calls) / static_cast<double>(sum.calls);
  return part;
}

}  // namespace

AuditVerdict verdict_of_product(WorkClass work) {
  switch (work) {
    case WorkClass::int8_gemm: return AuditVerdict::native_int8;
    case WorkClass::fp8_gemm: return AuditVerdict::native_fp8;
    case WorkClass::four_bit_gemm: return AuditVerdict::native_four_bit;
    case WorkClass::weight_only_gemm: return AuditVerdict::weight_only;
    case WorkClass::half_gemm:
    case WorkClass::single_gemm: return AuditVerdict::unquantized;
    default: return AuditVerdict::unclear;
  }
}

AuditVerdict verdict_of_widened(ScalarType stored) {
  switch (stored) {
    case ScalarType::fp8: return AuditVerdict::fake_fp8;
    case ScalarType::fp4: return AuditVerdict::fake_four_bit;
    default: return AuditVerdict::fake_int8;
  }
}

std::vector<LinearCall> find_linears_in_sums(const WorkList& list) {
  WidenedSums widened = widened_in(list);
  const double us_per_widening =
      widened.certain > 0 ? widened.certain_us / static_cast<double>(widened.certain) : 0;
  // Of a model that was dequantized when it was loaded, most products ran without.
  const bool kept = widened.certain * 2 < floating_calls(list);
  std::vector<LinearCall> found;
  for (uint32_t i = 0; i < list.works().size(); ++i) {
    const Work& work = list.works()[i];
    if (!is_gemm(work.work) || list.calls(work) <= 0) continue;
    LinearCall all{.work = i, .verdict = verdict_of_product(work.work)};
    all.calls = list.calls(work);
    all.gemm_us = list.us(work);
    if (all.verdict != AuditVerdict::unquantized) {
      if (all.verdict == AuditVerdict::unclear) all.doubt = Doubt::no_type;
      found.push_back(all);
      continue;
    }
    const int64_t fake = std::min(widened.certain, all.calls);
    const int64_t unclear = std::min(widened.possible, all.calls - fake);
    widened.certain -= fake;
    widened.possible -= unclear;
    if (fake > 0) {
      LinearCall call = part_of(all, fake);
      call.stored = widened.stored;
      call.is_widened = true;
      call.sure = !kept;
      call.verdict = kept ? AuditVerdict::unclear : verdict_of_widened(widened.stored);
      call.doubt = kept ? Doubt::kept : Doubt::none;
      call.dequantize_us = us_per_widening * static_cast<double>(fake);
      found.push_back(call);
    }
    if (unclear > 0) {
      LinearCall call = part_of(all, unclear);
      call.verdict = AuditVerdict::unclear;
      call.doubt = Doubt::cast_beside;
      found.push_back(call);
    }
    const int64_t rest = all.calls - fake - unclear;
    if (rest > 0) found.push_back(part_of(all, rest));
  }
  return found;
}

void doubt_by_casts(const WorkList& list, std::vector<LinearCall>& calls) {
  int64_t casts = 0, floating = 0;
  for (const Work& work : list.works()) {
    const bool casts_perhaps = list.name(work) == "aten::_to_copy" || list.is_compiled(work);
    if (casts_perhaps) casts += list.calls(work);
  }
  for (const LinearCall& call : calls) {
    if (call.verdict == AuditVerdict::unquantized) floating += call.calls;
  }
  if (2 * casts < floating) return;
  for (LinearCall& call : calls) {
    if (call.verdict != AuditVerdict::unquantized || casts <= 0) continue;
    call.verdict = AuditVerdict::unclear;
    call.doubt = Doubt::cast_beside;
    casts -= call.calls;
  }
}

}  // namespace octet::audit
