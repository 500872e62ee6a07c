#include "octet/tune.h"

#include "base/error.h"
#include "base/utc.h"
#include "devices/select.h"
#include "measure/problems.h"
#include "octet/version.h"

namespace octet {
namespace {

double reference(const GemmPlan& plan, const char* name) {
  const auto found = plan.reference_us.find(name);
  return found == plan.reference_us.end() ? 0 : found->second;
}

TuneRow row_of(const GemmProblem& problem, const GemmPlan& plan) {
  TuneRow row;
  row.m = problem.m;
  row.n = problem.n;
  row.k = problem.k;
  row.out = name_of(problem.out);
  row.fusion = name_of(problem.fusion);
  row.kernel = plan.kernel;
  row.source = measure::name_of(plan.source);
  row.date = plan.date;
  row.us = plan.us;
  row.tops =
      plan.us > 0 ? measure::operations_of(problem.m, problem.n, problem.k) / plan.us * 1e-6 : 0;
  row.runner_up = plan.runner_up;
  row.runner_up_us = plan.runner_up_us;
  row.unquantized_us = reference(plan, kUnquantized);
  row.quantize_us = reference(plan, kQuantize);
  row.faster = measure::faster_path(plan);
  return row;
}

}  // namespace

TuneReport tune_gemm(const TuneRequest& request, const std::function<void(int, int)>& progress) {
  const tune::TuneMode mode = tune::parse_tune_mode(request.mode);
  check(mode != tune::TuneMode::off, "tune: the mode is off, expected missing or all");
  const auto problems = measure::model_problems(request.shapes);
  const auto backend =
      select_backend({.device = request.device, .threads = request.threads, .tune = mode});
  const int total = static_cast<int>(problems.size());
  if (progress) progress(0, total);
  TuneReport report;
  report.device = backend->description();
  report.date = utc_now();
  report.commit = commit();
  report.mode = request.mode;
  for (const GemmProblem& problem : problems) {
    const GemmPlan plan = backend->plan_gemm(problem);
    report.has_choice = report.has_choice || plan.source != GemmPlan::Source::only;
    report.rows.push_back(row_of(problem, plan));
    if (progress) progress(static_cast<int>(report.rows.size()), total);
  }
  return report;
}

}  // namespace octet
