// Which kernel of the table runs a problem: the forced one, or the planner's choice.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/gemm_tuning.h"
#include "cuda/gemm/launcher.h"
#include "cuda/matmul/matmul.h"
#include "tune/planner.h"
#include "tune/refiner.h"

namespace octet::cuda {

class GemmChooser {
 public:
  // `forced`: the only kernel that may run; empty: the planner chooses. `refines`: what the planner
  // would have to measure first is measured in refine(), which somebody calls.
  GemmChooser(std::shared_ptr<Device> device, GemmLauncher& launcher, Matmul& matmul,
              tune::Planner planner, const std::string& forced, bool refines);

  // A single lookup if the problem was seen before.
  const GemmCandidate& choose(const GemmProblem& problem);
  // With its times, which are measured if they are not known and the mode allows it.
  GemmPlan plan(const GemmProblem& problem);

  // See Backend::refine().
  void refine(double seconds);

  bool is_forced() const { return forced_ != nullptr; }
  tune::Planner& planner() { return planner_; }

 private:
  std::function<tune::Trial()> trial_of(const GemmProblem& problem);
  // What is known now; the rest is for refine().
  const GemmPlan& plan_at_once(const GemmProblem& problem, std::vector<tune::Candidate> candidates);
  void learn(tune::Refiner::Result result);
  const GemmPlan* adopted_plan(const GemmProblem& problem,
                               const std::vector<tune::Candidate>& candidates);
  const GemmCandidate& choose_by_plan(const GemmProblem& problem);
  std::vector<tune::Candidate> candidates_for(const GemmProblem& problem);
  // Throws Error with a reason if there is none.
  void check_any(const std::vector<tune::Candidate>& candidates, const GemmProblem& problem);

  std::shared_ptr<Device> device_;
  GemmLauncher& launcher_;
  Matmul& matmul_;
  tune::Planner planner_;
  bool refines_;
  tune::Refiner refiner_;
  const GemmCandidate* forced_ = nullptr;
  bool trace_;
  std::unordered_map<GemmProblem, const GemmCandidate*> chosen_;
};

}  // namespace octet::cuda
