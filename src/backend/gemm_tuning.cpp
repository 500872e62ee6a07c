#include "backend/gemm_tuning.h"

namespace octet {

std::string_view name_of(GemmPlan::Source source) {
  switch (source) {
    case GemmPlan::Source::only: return "only";
    case GemmPlan::Source::forced: return "forced";
    case GemmPlan::Source::estimate: return "estimate";
    case GemmPlan::Source::predicted: return "predicted";
    case GemmPlan::Source::shipped: return "shipped";
    case GemmPlan::Source::file: return "file";
    case GemmPlan::Source::tuned: return "tuned";
  }
  return "?";
}

}  // namespace octet
