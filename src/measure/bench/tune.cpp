#include "octet/tools/tune.h"

#include "backend/host_backend.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/utc.h"
#include "devices/select.h"
#include "formats/boundary.h"
#include "measure/bench/problems.h"
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
  row.source = name_of(plan.source);
  row.date = plan.date;
  row.us = plan.us;
  row.under_load = plan.under_load;
  row.tops =
      plan.us > 0 ? measure::operations_of(problem.m, problem.n, problem.k) / plan.us * 1e-6 : 0;
  row.runner_up = plan.runner_up;
  row.runner_up_us = plan.runner_up_us;
  row.unquantized_us = reference(plan, kUnquantized);
  row.quantize_us = reference(plan, kQuantize);
  row.faster = measure::faster_path(plan);
  return row;
}

bool is_choice(const GemmPlan& plan) {
  return plan.source != GemmPlan::Source::only && plan.source != GemmPlan::Source::forced;
}

// Asked before the first plan, which would take seconds where there is something to measure.
bool may_measure(const Backend& backend) {
  return !keeps_data_on_host(backend) && !env::force_kernel();
}

}  // namespace

TuneReport tune_gemm(const TuneRequest& request,
                     const std::function<void(int, int)>& progress) try {
  check(request.mode != Tuning::off, "tune: the mode is off, expected missing or all");
  const auto problems = measure::model_problems(request.shapes);
  const auto backend =
      select_backend({.device = request.device, .threads = request.threads, .tune = request.mode});
  GemmTuning& tuning = backend->tuning();
  const int total = static_cast<int>(problems.size());
  const bool measures = may_measure(*backend);
  const bool shows_progress = progress && measures;
  TuneReport report;
  report.plan_file = tuning.plan_file();
  if (measures && report.plan_file.empty()) {
    log::warning(
        "tune: there is no folder for the plan file, so the plans are lost when this program "
        "ends; set OCTET_CACHE_DIR");
  }
  if (shows_progress) progress(0, total);
  report.device = backend->description();
  report.date = utc_now();
  report.commit = commit();
  report.mode = request.mode;
  int unmeasured = 0;
  for (const GemmProblem& problem : problems) {
    const GemmPlan plan = tuning.plan_gemm(problem);
    report.has_choice = report.has_choice || is_choice(plan);
    report.is_forced = report.is_forced || plan.source == GemmPlan::Source::forced;
    unmeasured += is_choice(plan) && plan.us <= 0 ? 1 : 0;
    report.rows.push_back(row_of(problem, plan));
    if (shows_progress) progress(static_cast<int>(report.rows.size()), total);
  }
  check(total == 0 || unmeasured < total,
        "tune: none of the {} problems could be measured on {}, for the reasons in the warnings; "
        "free memory of the device or use smaller shapes",
        total, backend->name());
  return report;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
