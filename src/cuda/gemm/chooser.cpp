#include "cuda/gemm/chooser.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "cuda/check.h"
#include "cuda/gemm/trial.h"

namespace octet::cuda {
namespace {

// Measuring is the device's own business: on its stream, in its memory, when the caller's work is
// done.
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

// The rows of activations that a caller's problem is measured with. Each text of a prompt has
// another number of tokens, and neighbours run best on the same kernel.
int64_t representative_rows(int64_t m) {
  if (m <= 16) return m;
  const int64_t step = m <= 128 ? 16 : m <= 1024 ? 128 : 256;
  return round_up(m, step);
}

}  // namespace

GemmChooser::GemmChooser(std::shared_ptr<Device> device, GemmLauncher& launcher, Matmul& matmul,
                         tune::Planner planner, const std::string& forced)
    : device_(std::move(device)),
      launcher_(launcher),
      matmul_(matmul),
      planner_(std::move(planner)),
      trace_(env::trace("gemm")) {
  if (!forced.empty()) forced_ = &find_candidate(forced);
}

std::vector<tune::Candidate> GemmChooser::candidates_for(const GemmProblem& problem) {
  std::vector<tune::Candidate> candidates;
  std::string first_refusal;
  for (const GemmCandidate& candidate : gemm_candidates()) {
    const std::string refusal = launcher_.refusal(candidate, problem);
    if (first_refusal.empty()) first_refusal = refusal;
    if (refusal.empty()) {
      candidates.push_back({candidate.name, launcher_.estimate_us(candidate, problem),
                            fmt::format("{}x{}", candidate.row->m, candidate.row->n)});
    } else if (trace_) {
      log::trace("gemm {}: not {}: {}", problem.to_string(), candidate.name, refusal);
    }
  }
  check(!candidates.empty(), "gemm: no kernel takes {}: {} {}", problem.to_string(),
        gemm_candidates()[0].name, first_refusal);
  return candidates;
}

const GemmPlan& GemmChooser::measured_plan(const GemmProblem& problem) {
  if (const GemmPlan* known = planner_.find(problem)) return *known;
  return planner_.choose(problem, candidates_for(problem), [&] {
    return begin_trial(device_, launcher_, matmul_.library(), problem);
  });
}

GemmPlan GemmChooser::plan(const GemmProblem& problem) {
  if (forced_ == nullptr) return measured_plan(problem);
  return {.kernel = choose(problem).name, .source = GemmPlan::Source::forced};
}

const GemmCandidate& GemmChooser::choose(const GemmProblem& problem) {
  if (const auto known = chosen_.find(problem); known != chosen_.end()) return *known->second;
  const GemmCandidate* candidate = forced_;
  if (candidate != nullptr) {
    const std::string refusal = launcher_.refusal(*candidate, problem);
    check(refusal.empty(), "gemm: {} was forced but cannot run {}: {}", candidate->name,
          problem.to_string(), refusal);
  } else if (device_->caller() != nullptr) {
    return choose_for_caller(problem);
  } else {
    candidate = &find_candidate(measured_plan(problem).kernel);
  }
  chosen_[problem] = candidate;
  return *candidate;
}

const GemmCandidate& GemmChooser::choose_for_caller(const GemmProblem& problem) {
  GemmProblem measured = problem;
  measured.m = representative_rows(problem.m);
  const bool waits = planner_.would_measure(measured);
  const GemmCandidate* candidate = nullptr;
  if (waits && device_->is_capturing()) {
    // Nothing may be waited for now; the next call that may be measured for will be.
    const std::vector<tune::Candidate> candidates = candidates_for(problem);
    candidate = &find_candidate(
        std::min_element(candidates.begin(), candidates.end(), tune::has_better_estimate)->name);
    return *candidate;
  }
  {
    std::optional<AtHome> home;
    if (waits) home.emplace(*device_);
    candidate = &find_candidate(measured_plan(measured).kernel);
  }
  // One that shares tiles along k may have none to share here, with fewer rows.
  if (!launcher_.refusal(*candidate, problem).empty()) {
    const std::string& whole = candidate->row->name;
    candidate = &find_candidate(whole);
  }
  chosen_[problem] = candidate;
  return *candidate;
}

}  // namespace octet::cuda
