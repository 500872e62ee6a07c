#include "octet/tools/audit.h"

#include <fmt/format.h>

#include "audit/examine.h"
#include "audit/patterns.h"
#include "audit/read_trace.h"
#include "base/invalid_request.h"
#include "formats/boundary.h"
#include "measure/predict/card.h"
#include "measure/predict/card_ratio.h"
#include "models/block_shape.h"

namespace octet {
namespace {

// Nothing for an unknown card.
audit::RatioOf ratios_on(const std::string& card) {
  const GemmShape usual = models::usual_linear(*models::families().front());
  if (card.empty() || !predict::int8_ratio(card, usual.m, usual.n, usual.k)) return {};
  return [card, usual](int64_t m, int64_t n, int64_t k) -> std::optional<audit::PathRatios> {
    const auto ratio = n > 0 ? predict::int8_ratio(card, m, n, k)
                             : predict::int8_ratio(card, usual.m, usual.n, usual.k);
    if (!ratio) return std::nullopt;
    return audit::PathRatios{
        .bf16 = ratio->bf16,
        .fp8 = ratio->fp8,
        .measured = ratio->measured,
        .source = fmt::format("{} {}", ratio->measured ? "measured on an" : "predicted for the",
                              ratio->card)};
  };
}

}  // namespace

AuditReport audit_traces(const AuditRequest& request,
                         const std::function<void(uint64_t, uint64_t)>& progress) try {
  check_value(!request.traces.empty(), "traces",
              "no trace was given, expected at least one; pass a file");
  for (size_t i = 0; i < request.traces.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      check_value(request.traces[i] != request.traces[j], "traces",
                  "{}: was given twice, and would count twice; leave one out", request.traces[i]);
    }
  }
  // Before anything is read, since that can take long.
  const audit::RatioOf asked = ratios_on(request.card);
  check_value(request.card.empty() || asked, "card",
              "nothing is known about `card` '{}', expected one such as rtx3090 or a100",
              request.card);
  // Made while there is memory: afterwards a long trace may have taken it all.
  audit::name_rows();
  audit::log_rows();
  predict::cards();
  audit::Examination examination;
  for (const std::string& path : request.traces) {
    examination.add(audit::read_trace(path, progress));
  }
  const audit::RatioOf ratio_of = asked ? asked : ratios_on(examination.device());
  return examination.finish(ratio_of);
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
