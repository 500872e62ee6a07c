// Traces of one run into a report.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "audit/trace.h"
#include "octet/tools/audit.h"

namespace octet::audit {

// Times of other paths over that of native INT8, for a linear of this size; 0: unknown. Where a
// trace has no shapes, n is 0, and the ratios are those of any large linear.
struct PathRatios {
  double bf16 = 0, fp8 = 0;
  bool measured = false;
  std::string source;  // "measured on an NVIDIA H200", "predicted for the NVIDIA GeForce RTX 3090"
};
using RatioOf = std::function<std::optional<PathRatios>(int64_t m, int64_t n, int64_t k)>;

class Examination {
 public:
  Examination();
  ~Examination();
  // Takes one file's trace, of which nothing is kept but sums.
  void add(const Trace& trace);
  // What the files say they ran on; empty: they do not.
  const std::string& device() const;
  // `ratio_of` may be empty: nothing is known about the card.
  AuditReport finish(const RatioOf& ratio_of);

 private:
  struct Sums;
  std::unique_ptr<Sums> sums_;
};

}  // namespace octet::audit
