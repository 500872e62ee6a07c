// From how linears ran to a verdict and its sentence.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "audit/linears.h"
#include "octet/tools/audit.h"

namespace octet::audit {

struct Tally {
  int64_t calls = 0;
  double us = 0;
  Tally& operator+=(const Tally& other) {
    calls += other.calls;
    us += other.us;
    return *this;
  }
};

// Calls of large linears of one model, by how they ran.
struct LinearCounts {
  std::array<Tally, static_cast<size_t>(AuditVerdict::no_linears) + 1> by;  // by verdict
  // Of the unquantized: those of a size at which others ran natively. Some are protected on
  // purpose, and nothing tells which.
  int64_t beside_native = 0;
  int64_t unsized = 0;  // likewise: those whose size is not told
  // Whether native linears and those whose weights were widened are of one model: they alternate,
  // or are of the same sizes.
  bool is_one_model = false;
  // What most of the products that were not native are in: "bf16", "fp32".
  std::string floating = "bf16";
  int64_t small = 0;             // that count for nothing
  Doubt doubt = Doubt::no_type;  // of most that are unclear
  // Time of unknown kernels that may be products, and the names of those that took most of it.
  double unknown_us = 0;
  std::vector<std::string> unknown_names;
  std::string frequent_unknown;  // of those, one that ran about as often as linears; empty: none

  Tally& of(AuditVerdict verdict) { return by[static_cast<size_t>(verdict)]; }
  const Tally& of(AuditVerdict verdict) const { return by[static_cast<size_t>(verdict)]; }
  Tally native() const;
  Tally fake() const;
  Tally all() const;
  double unknown_share() const;  // of the time of all products, known and possible
};

// Where the verdict is unclear, `doubt` is told why.
AuditVerdict judge(const LinearCounts& counts, Doubt& doubt);
std::string headline_of(AuditVerdict verdict, Doubt doubt, const LinearCounts& counts);

// Where there is nothing but a log.
AuditVerdict judge(const std::vector<LogFinding>& log);
std::string headline_of(AuditVerdict verdict, const std::vector<LogFinding>& log);

// "int8 weight dequantized, then a bf16 GEMM"
std::string how_it_ran(AuditVerdict verdict, ScalarType stored, const std::string& floating);

}  // namespace octet::audit
