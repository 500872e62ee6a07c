// Chooses the kernel of each problem, once per process.
//
// Lookup order: memory -> plan file -> a shipped plan measured for just this problem -> tune now ->
// shipped plan of a similar problem, or a predicted one -> best estimate. Who must not wait leaves
// the tuning out, and does it later (refiner.h). Only plans that this device measured go into the
// file. Nothing that fails on the way (the file, the memory for a trial, a kernel) stops the run:
// there is a log line, and the next source is asked. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backend/gemm_tuning.h"
#include "octet/model_options.h"
#include "tune/plan_cache.h"
#include "tune/shipped_plans.h"
#include "tune/tuner.h"

namespace octet::tune {

using TuneMode = Tuning;

// What it takes to measure one problem. Its functions own the buffers, which go with them.
struct Trial {
  Measure measure;
  std::vector<std::string> references;  // see find_fastest()
  MeasureUnderLoad under_load;          // empty: this device is measured only run by run
};

class Planner {
 public:
  explicit Planner(PlanCache cache, TuneMode mode, TunerOptions options = {},
                   ShippedPlans shipped = {});

  TuneMode mode() const { return mode_; }

  // The plan that choose() has returned before, or null: one lookup in memory, so that whoever asks
  // this first need not list the candidates each time.
  const GemmPlan* find(const GemmProblem& problem) const;

  // begin_trial is called only when something is measured, and its Trial is gone when choose()
  // returns. A plan of the file whose kernel is not among the candidates is not used. The plan that
  // is returned stays where it is as long as the planner. Throws Error when there is no candidate.
  const GemmPlan& choose(const GemmProblem& problem, const std::vector<Candidate>& candidates,
                         const std::function<Trial()>& begin_trial);

  // The same for those who want to know times, too: what came with the program does not answer
  // that, and a plan that was refined between other work lacks the references. Both are measured.
  const GemmPlan& choose_thoroughly(const GemmProblem& problem,
                                    const std::vector<Candidate>& candidates,
                                    const std::function<Trial()>& begin_trial);

  // The same without measuring anything.
  const GemmPlan& choose_at_once(const GemmProblem& problem,
                                 const std::vector<Candidate>& candidates);

  // From now on the plan of a problem is what a trial found in the meantime, and the file has it,
  // unless it has a thorough measurement of somebody else by now, which comes first.
  void learn(const GemmProblem& problem, const std::vector<Candidate>& candidates,
             TunerResult result);

  // In memory or, where that counts, in the file; shipped ones only if measured for this problem.
  bool has_plan(const GemmProblem& problem, const std::vector<Candidate>& candidates);
  // Whether choose() would begin a trial.
  bool would_measure(const GemmProblem& problem, const std::vector<Candidate>& candidates);

  // Makes the measured plan of another problem, known or in the file, this one's too, unless it has
  // one or the kernel is no candidate: for problems that the same kernel is best for. It is not
  // written into the file. Null: nothing was done.
  const GemmPlan* adopt(const GemmProblem& problem, const GemmProblem& other,
                        const std::vector<Candidate>& candidates);

  // Adds other ways to the result to a plan that was measured, here and in the file: what is known
  // under the same names is replaced. Nothing for a plan that was not measured, or never asked for.
  // Whether the file has them now.
  bool add_references(const GemmProblem& problem,
                      const std::map<std::string, double>& reference_us);

  // All that the file knows.
  const Plans& known();

 private:
  enum class Wanted { plan, times };
  GemmPlan make_plan(const GemmProblem& problem, const std::vector<Candidate>& candidates,
                     const std::function<Trial()>& begin_trial, Wanted wanted);
  // What is known without measuring; `exactly`: only for this very problem.
  std::optional<GemmPlan> shipped(const GemmProblem& problem,
                                  const std::vector<Candidate>& candidates, bool exactly);
  GemmPlan unmeasured(const GemmProblem& problem, const std::vector<Candidate>& candidates);
  std::optional<GemmPlan> from_file(const GemmProblem& problem,
                                    const std::vector<Candidate>& candidates);
  std::optional<GemmPlan> tuned(const GemmProblem& problem,
                                const std::vector<Candidate>& candidates,
                                const std::function<Trial()>& begin_trial);

  PlanCache cache_;
  TuneMode mode_;
  TunerOptions options_;
  ShippedPlans shipped_;
  bool is_loaded_ = false;
  std::unordered_map<GemmProblem, GemmPlan> plans_;  // its nodes never move
};

}  // namespace octet::tune
