#include "tune/refiner.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <iterator>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace octet::tune {
namespace {

constexpr size_t kMostProblems = 256;
// Of a run besides its kernels: memory for it, random numbers, launches, waiting.
constexpr double kFirstRunS = 0.5e-3;

// Less than `octet tune` does, which has seconds: two or three pictures for all that a model asks.
TunerOptions between_steps() {
  TunerOptions options;
  options.most_candidates = 10;
  options.full_rounds = 2;
  options.rounds = 3;
  options.finalists = 4;
  options.final_rounds = 6;
  return options;
}

// Ends a tournament where its next run has no time yet. No std::exception, so that nobody on the
// way takes it for a run that failed.
struct NotMeasuredYet {};

double work_of(const GemmProblem& problem) {
  return static_cast<double>(problem.m) * static_cast<double>(problem.n) *
         static_cast<double>(problem.k);
}

}  // namespace

Refiner::Refiner(Clock clock) : clock_(std::move(clock)) {}

void Refiner::add(const GemmProblem& problem, std::vector<Candidate> candidates) {
  if (seen_.size() == kMostProblems || std::ranges::find(seen_, problem) != seen_.end()) return;
  seen_.push_back(problem);
  if (candidates.size() < 2) return;
  Task task{.problem = problem, .candidates = std::move(candidates)};
  task.cost_s = kFirstRunS + 2e-6 * task.candidates.front().estimate_us;
  // The tournament goes by the estimates.
  std::ranges::stable_sort(task.candidates.begin() + 1, task.candidates.end(), has_better_estimate);
  double rank = 0;
  for (Candidate& candidate : task.candidates) candidate.estimate_us = rank++;
  const auto begin =
      tasks_.empty() || tasks_.front().times.empty() ? tasks_.begin() : std::next(tasks_.begin());
  const auto smaller = std::find_if(begin, tasks_.end(), [&](const Task& other) {
    return work_of(other.problem) < work_of(problem);
  });
  tasks_.insert(smaller, std::move(task));
}

std::optional<TunerResult> Refiner::measure_next(Task& task, const Measure& measure) {
  size_t run = 0;
  bool has_measured = false;
  std::exception_ptr no_memory;
  const Measure known_or_new = [&](const std::string& name, int turn) {
    if (run < task.times.size()) return task.times[run++];
    if (std::exchange(has_measured, true)) throw NotMeasuredYet();
    try {
      const double us = measure(name, turn);
      check(std::isfinite(us) && us > 0, "its time is {} us, expected a positive number", us);
      task.times.push_back(us);
      return task.times[run++];
    } catch (const OutOfMemory&) {
      no_memory = std::current_exception();
    } catch (const Error& error) {
      // Without it the tournament has other runs, and begins again.
      log::debug("tuning: {} is left out: {}", name, error.sentence());
      std::erase_if(task.candidates, [&](const Candidate& each) { return each.name == name; });
      task.times.clear();
    }
    throw NotMeasuredYet();
  };
  try {
    return find_fastest(task.candidates, {}, known_or_new, between_steps());
  } catch (const NotMeasuredYet&) {
    if (no_memory) std::rethrow_exception(no_memory);
    return std::nullopt;
  }
}

void Refiner::run(double seconds, const std::function<Trial(const GemmProblem&)>& begin,
                  const std::function<void(Result)>& done) {
  if (tasks_.empty()) return;
  credit_s_ += seconds;
  std::optional<Trial> trial;
  while (!tasks_.empty() && credit_s_ >= tasks_.front().cost_s) {
    const double begun = clock_();
    Task& task = tasks_.front();
    bool is_over = false;
    try {
      if (!trial) trial = begin(task.problem);
      if (auto found = measure_next(task, trial->measure)) {
        is_over = true;
        trial.reset();
        done({task.problem, task.candidates, *std::move(found)});
      }
    } catch (const Error& error) {
      is_over = true;
      log::debug("tuning {} between steps is given up: {}", task.problem.to_string(),
                 error.sentence());
    } catch (const std::bad_alloc&) {
      is_over = true;
      log::debug("tuning {} between steps is given up: out of memory", task.problem.to_string());
    }
    if (is_over) {
      trial.reset();
      tasks_.pop_front();
    }
    const double took = clock_() - begun;
    credit_s_ -= took;
    if (!is_over) task.cost_s = took;
  }
  if (tasks_.empty()) credit_s_ = std::min(credit_s_, 0.0);
}

}  // namespace octet::tune
