#include "cuda/gemm/chooser.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/stopwatch.h"
#include "cuda/check.h"
#include "cuda/gemm/pack.h"
#include "cuda/gemm/trial.h"

namespace octet::cuda {
namespace {

using tune::TuneMode;

// The device measures on its own stream and in its own memory, once the caller's work is done.
class AtHome {
 public:
  explicit AtHome(Device& device) : device_(device), caller_(device.caller()) {
    if (caller_ == nullptr) return;
    device_.synchronize();
    device_.visit(nullptr);
  }
  ~AtHome() { device_.visit(caller_); }
  AtHome(const AtHome&) = delete;
  AtHome& operator=(const AtHome&) = delete;

 private:
  Device& device_;
  Caller* caller_;
};

// The rows of activations with which a problem is measured that has no plan of its own. Each prompt
// has another number of tokens, and similar numbers run best on the same kernel: a server that
// measured each number took seconds for every new caption.
int64_t representative_rows(int64_t m) {
  if (m <= 16) return m;
  const int64_t step = m <= 128 ? 16 : m <= 1024 ? 128 : 256;
  return round_up(m, step);
}

// From here on a kernel takes as long with plain rows as with packed ones (0.97 to 1.02 times,
// H200), while the best kernels are closer to each other than two runs of the tuner agree.
constexpr int64_t kRowsWithoutDifference = 2048;

}  // namespace

GemmChooser::GemmChooser(std::shared_ptr<Device> device, GemmLauncher& launcher, Matmul& matmul,
                         tune::Planner planner, const std::string& forced, bool refines)
    : device_(std::move(device)),
      launcher_(launcher),
      matmul_(matmul),
      planner_(std::move(planner)),
      refines_(refines && planner_.mode() != TuneMode::all),
      refiner_([watch = Stopwatch()] { return watch.microseconds() * 1e-6; }),
      trace_(env::trace("gemm")) {
  if (forced.empty()) return;
  try {
    forced_ = &find_candidate(forced);
  } catch (const Error& error) {
    fail("OCTET_FORCE_KERNEL: {}", error.sentence());
  }
}

std::vector<tune::Candidate> GemmChooser::candidates_for(const GemmProblem& problem) {
  std::vector<tune::Candidate> candidates;
  for (const GemmCandidate& candidate : gemm_candidates()) {
    const std::string refusal = launcher_.refusal(candidate, problem);
    if (refusal.empty()) {
      candidates.push_back({candidate.name, launcher_.estimate_us(candidate, problem),
                            fmt::format("{}x{}", candidate.row->m, candidate.row->n)});
    } else if (trace_) {
      log::trace("gemm {}: not {}: {}", problem.to_string(), candidate.name, refusal);
    }
  }
  return candidates;
}

void GemmChooser::check_any(const std::vector<tune::Candidate>& candidates,
                            const GemmProblem& problem) {
  if (!candidates.empty()) return;
  const GemmCandidate& first = gemm_candidates()[0];
  fail("gemm: no kernel takes {}: {} {}", problem.to_string(), first.name,
       launcher_.refusal(first, problem));
}

std::function<tune::Trial()> GemmChooser::trial_of(const GemmProblem& problem) {
  return [this, problem] { return begin_trial(device_, launcher_, matmul_.library(), problem); };
}

const GemmPlan* GemmChooser::adopted_plan(const GemmProblem& problem,
                                          const std::vector<tune::Candidate>& candidates) {
  if (problem.layout != kPlainLayout || problem.m < kRowsWithoutDifference) return nullptr;
  GemmProblem packed = problem;
  packed.layout = kWeightLayout;
  return planner_.adopt(problem, packed, candidates);
}

GemmPlan GemmChooser::plan(const GemmProblem& problem) {
  if (forced_ != nullptr) {
    return {.kernel = choose(problem).name, .source = GemmPlan::Source::forced};
  }
  const std::vector<tune::Candidate> candidates = candidates_for(problem);
  check_any(candidates, problem);
  return planner_.choose_thoroughly(problem, candidates, trial_of(problem));
}

const GemmPlan& GemmChooser::plan_at_once(const GemmProblem& problem,
                                          std::vector<tune::Candidate> candidates) {
  const bool is_measured = planner_.has_plan(problem, candidates);
  const GemmPlan& plan = planner_.choose_at_once(problem, candidates);
  if (is_measured || planner_.mode() == TuneMode::off) return plan;
  const auto in_use = std::ranges::find(candidates, plan.kernel, &tune::Candidate::name);
  std::rotate(candidates.begin(), in_use, in_use + 1);
  refiner_.add(problem, std::move(candidates));
  return plan;
}

void GemmChooser::refine(double seconds) {
  if (!refiner_.has_work() || device_->caller() != nullptr) return;
  refiner_.run(
      seconds,
      [this](const GemmProblem& problem) {
        // Half of what is free: others take memory, too, and a picture is decoded later.
        return begin_short_trial(device_, problem, device_->free_memory() / 2);
      },
      [this](tune::Refiner::Result result) { learn(std::move(result)); });
  if (!refiner_.has_work()) device_->give_back_unused();  // that was all: others may need it
}

// Work that was recorded keeps its kernels. All have the same bits, so it does not matter whether a
// picture has begun.
void GemmChooser::learn(tune::Refiner::Result result) {
  const std::string before = planner_.find(result.problem)->kernel;
  planner_.learn(result.problem, result.candidates, std::move(result.found));
  const GemmPlan& plan = *planner_.find(result.problem);
  log::debug("tuning: {} runs {} from now on, {} until now", result.problem.to_string(),
             plan.kernel, before);
  launcher_.reserve(find_candidate(plan.kernel), result.problem);
  chosen_.clear();
}

const GemmCandidate& GemmChooser::choose(const GemmProblem& problem) {
  if (const auto known = chosen_.find(problem); known != chosen_.end()) return *known->second;
  const GemmCandidate* candidate = forced_;
  if (candidate != nullptr) {
    const std::string refusal = launcher_.refusal(*candidate, problem);
    check(refusal.empty(), "gemm: {} was forced but cannot run {}: {}", candidate->name,
          problem.to_string(), refusal);
  } else {
    return choose_by_plan(problem);
  }
  chosen_[problem] = candidate;
  return *candidate;
}

const GemmCandidate& GemmChooser::choose_by_plan(const GemmProblem& problem) {
  std::vector<tune::Candidate> candidates = candidates_for(problem);
  check_any(candidates, problem);
  GemmProblem measured = problem;
  if (!planner_.has_plan(problem, candidates)) {
    measured.m = representative_rows(problem.m);
    std::vector<tune::Candidate> of_measured = candidates_for(measured);
    // Rounded up, the activations may be too large for any kernel.
    if (of_measured.empty()) {
      measured = problem;
    } else {
      candidates = std::move(of_measured);
    }
  }
  const GemmPlan* plan = planner_.find(measured);
  if (plan == nullptr) {
    plan = adopted_plan(measured, candidates);
    if (plan == nullptr && refines_ && device_->caller() == nullptr) {
      plan = &plan_at_once(measured, candidates);
    }
    const bool measures = plan == nullptr && planner_.would_measure(measured, candidates);
    if (measures && device_->is_capturing()) {
      // Nothing may wait now; the next call that may is measured.
      const std::vector<tune::Candidate> here = candidates_for(problem);
      check_any(here, problem);
      return find_candidate(
          std::min_element(here.begin(), here.end(), tune::has_better_estimate)->name);
    }
    std::optional<AtHome> home;
    if (measures) home.emplace(*device_);
    if (plan == nullptr) plan = &planner_.choose(measured, candidates, trial_of(measured));
    if (trace_) {
      log::trace("gemm {}: {} ({})", measured.to_string(), plan->kernel, name_of(plan->source));
    }
  }
  const GemmCandidate* candidate = &find_candidate(plan->kernel);
  // A kernel that shares tiles along k may have none to share with fewer rows.
  if (!launcher_.refusal(*candidate, problem).empty()) {
    candidate = &find_candidate(candidate->row->name);
  }
  chosen_[problem] = candidate;
  return *candidate;
}

}  // namespace octet::cuda
