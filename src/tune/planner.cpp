#include "tune/planner.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/utc.h"

namespace octet::tune {
namespace {

GemmPlan estimated(const std::vector<Candidate>& candidates) {
  GemmPlan plan;
  plan.kernel = std::min_element(candidates.begin(), candidates.end(), has_better_estimate)->name;
  plan.source = GemmPlan::Source::estimate;
  return plan;
}

bool is_among(const std::vector<Candidate>& candidates, const std::string& kernel) {
  return std::ranges::any_of(candidates,
                             [&](const Candidate& candidate) { return candidate.name == kernel; });
}

void check_any(const GemmProblem& problem, const std::vector<Candidate>& candidates) {
  check(!candidates.empty(), "gemm: no kernel of this backend fits {}", problem.to_string());
}

GemmPlan plan_from_trial(TunerResult result) {
  GemmPlan plan;
  plan.kernel = std::move(result.winner);
  plan.source = GemmPlan::Source::tuned;
  plan.us = result.winner_us;
  plan.under_load = result.under_load;
  plan.runner_up = std::move(result.runner_up);
  plan.runner_up_us = result.runner_up_us;
  plan.reference_us = std::move(result.reference_us);
  plan.date = utc_now();
  return plan;
}

}  // namespace

Planner::Planner(PlanCache cache, TuneMode mode, TunerOptions options, ShippedPlans shipped)
    : cache_(std::move(cache)), mode_(mode), options_(options), shipped_(std::move(shipped)) {}

const GemmPlan* Planner::find(const GemmProblem& problem) const {
  const auto found = plans_.find(problem);
  return found == plans_.end() ? nullptr : &found->second;
}

const GemmPlan& Planner::choose(const GemmProblem& problem,
                                const std::vector<Candidate>& candidates,
                                const std::function<Trial()>& begin_trial) {
  if (const GemmPlan* known = find(problem)) return *known;
  GemmPlan plan = make_plan(problem, candidates, begin_trial, Wanted::plan);
  return plans_.emplace(problem, std::move(plan)).first->second;
}

const GemmPlan& Planner::choose_thoroughly(const GemmProblem& problem,
                                           const std::vector<Candidate>& candidates,
                                           const std::function<Trial()>& begin_trial) {
  if (const GemmPlan* known = find(problem)) return *known;
  GemmPlan plan = make_plan(problem, candidates, begin_trial, Wanted::times);
  return plans_.emplace(problem, std::move(plan)).first->second;
}

const GemmPlan& Planner::choose_at_once(const GemmProblem& problem,
                                        const std::vector<Candidate>& candidates) {
  if (const GemmPlan* known = find(problem)) return *known;
  check_any(problem, candidates);
  std::optional<GemmPlan> plan = from_file(problem, candidates);
  if (!plan) plan = unmeasured(problem, candidates);
  return plans_.emplace(problem, *std::move(plan)).first->second;
}

GemmPlan Planner::make_plan(const GemmProblem& problem, const std::vector<Candidate>& candidates,
                            const std::function<Trial()>& begin_trial, Wanted wanted) {
  check_any(problem, candidates);
  const bool needs_times = wanted == Wanted::times && mode_ != TuneMode::off;
  if (mode_ != TuneMode::all) {
    auto plan = from_file(problem, candidates);
    if (plan && (!needs_times || !plan->reference_us.empty())) return *std::move(plan);
    if (!needs_times) {
      if (auto measured = shipped(problem, candidates, true)) return *std::move(measured);
    }
  }
  if (mode_ != TuneMode::off) {
    if (auto plan = tuned(problem, candidates, begin_trial)) return *std::move(plan);
  }
  // An older measurement, or a hasty one, is still better than none.
  if (mode_ == TuneMode::all || needs_times) {
    if (auto plan = from_file(problem, candidates)) return *std::move(plan);
  }
  return unmeasured(problem, candidates);
}

GemmPlan Planner::unmeasured(const GemmProblem& problem, const std::vector<Candidate>& candidates) {
  if (auto plan = shipped(problem, candidates, false)) return *std::move(plan);
  return estimated(candidates);
}

std::optional<GemmPlan> Planner::shipped(const GemmProblem& problem,
                                         const std::vector<Candidate>& candidates, bool exactly) {
  std::optional<ShippedPlans::Found> found = shipped_.find(problem);
  if (!found || (exactly && !found->is_exact)) return std::nullopt;
  if (is_among(candidates, found->plan.kernel)) return std::move(found->plan);
  log::debug("the plan for {} that comes with the program names {}, which is not a kernel for it",
             problem.to_string(), found->plan.kernel);
  return std::nullopt;
}

std::optional<GemmPlan> Planner::from_file(const GemmProblem& problem,
                                           const std::vector<Candidate>& candidates) {
  if (!std::exchange(is_loaded_, true)) cache_.load();
  const GemmPlan* plan = cache_.find(problem);
  if (plan == nullptr) return std::nullopt;
  if (is_among(candidates, plan->kernel)) return *plan;
  log::info("the plan file names {} for {}, which is not a kernel for it; the plan is not used",
            plan->kernel, problem.to_string());
  return std::nullopt;
}

std::optional<GemmPlan> Planner::tuned(const GemmProblem& problem,
                                       const std::vector<Candidate>& candidates,
                                       const std::function<Trial()>& begin_trial) {
  const auto explain = [&problem](const Sentence& reason) {
    log::warning("tuning {} failed, the kernel is chosen without: {}", problem.to_string(), reason);
  };
  TunerResult result;
  try {
    const Trial trial = begin_trial();
    result = find_fastest(candidates, trial.references, trial.measure, options_, trial.under_load);
  } catch (const Error& error) {
    explain(error.sentence());
    return std::nullopt;
  } catch (const std::bad_alloc&) {
    explain("out of memory");
    return std::nullopt;
  }
  GemmPlan plan = plan_from_trial(std::move(result));
  cache_.store(problem, plan);
  return plan;
}

void Planner::learn(const GemmProblem& problem, const std::vector<Candidate>& candidates,
                    TunerResult result) {
  is_loaded_ = true;
  cache_.load();
  auto known = from_file(problem, candidates);
  if (known && !known->reference_us.empty()) {
    plans_[problem] = *std::move(known);
    return;
  }
  GemmPlan& plan = plans_[problem] = plan_from_trial(std::move(result));
  cache_.store(problem, plan);
}

bool Planner::would_measure(const GemmProblem& problem, const std::vector<Candidate>& candidates) {
  return mode_ != TuneMode::off && !has_plan(problem, candidates);
}

bool Planner::has_plan(const GemmProblem& problem, const std::vector<Candidate>& candidates) {
  if (find(problem) != nullptr) return true;
  return mode_ != TuneMode::all && (from_file(problem, candidates).has_value() ||
                                    shipped(problem, candidates, true).has_value());
}

const GemmPlan* Planner::adopt(const GemmProblem& problem, const GemmProblem& other,
                               const std::vector<Candidate>& candidates) {
  if (has_plan(problem, candidates)) return nullptr;
  std::optional<GemmPlan> plan;
  if (const GemmPlan* known = find(other)) {
    plan = *known;
  } else if (mode_ != TuneMode::all) {
    plan = from_file(other, candidates);
  }
  if (!plan || plan->us <= 0 || !is_among(candidates, plan->kernel)) return nullptr;
  return &plans_.emplace(problem, *std::move(plan)).first->second;
}

bool Planner::add_references(const GemmProblem& problem,
                             const std::map<std::string, double>& reference_us) {
  const auto found = plans_.find(problem);
  if (found == plans_.end() || found->second.us <= 0) return false;
  GemmPlan& plan = found->second;
  for (const auto& [name, us] : reference_us) plan.reference_us[name] = us;
  cache_.store(problem, plan);
  const GemmPlan* kept = cache_.find(problem);
  return kept != nullptr && kept->reference_us == plan.reference_us;
}

const Plans& Planner::known() {
  if (!std::exchange(is_loaded_, true)) cache_.load();
  return cache_.plans();
}

}  // namespace octet::tune
