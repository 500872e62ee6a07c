// Chooses kernels by measuring in moments between other work: a little after each step of a
// picture, so that nobody ever waits for it.
//
// Each moment brings seconds that may be spent, and what was really spent is taken off them: a
// measurement begins only when they suffice for one as long as the last, so over time no more is
// spent than was given. The tournament is that of find_fastest(). It is deterministic, so it is
// held once more from its beginning with the times so far, up to the first run that has none yet:
// that takes microseconds, and one tournament serves both those who wait and those who do not.
//
// What is measured between steps runs at the clock that the steps leave, but too short to change
// it: kernels are told apart by their clocks and not by their power. `octet tune` sees both.
// One thread at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <optional>
#include <vector>

#include "tune/planner.h"

namespace octet::tune {

class Refiner {
 public:
  using Clock = std::function<double()>;  // seconds

  explicit Refiner(Clock clock);

  // Does nothing for a problem that was added before, and when too many wait. The first candidate
  // is the one in use, which stays where others are no faster.
  void add(const GemmProblem& problem, std::vector<Candidate> candidates);

  bool has_work() const { return !tasks_.empty(); }

  struct Result {
    const GemmProblem& problem;
    const std::vector<Candidate>& candidates;
    TunerResult found;
  };
  // Measures as long as the seconds last, the largest problems first. `begin` makes a trial, whose
  // memory is free again when this returns; `done` gets each problem that was measured to the end.
  // A problem that fails, or for which there is no memory, is left alone, with a debug line.
  void run(double seconds, const std::function<Trial(const GemmProblem&)>& begin,
           const std::function<void(Result)>& done);

 private:
  struct Task {
    GemmProblem problem;
    std::vector<Candidate> candidates;
    std::vector<double> times;  // of the tournament's runs so far, in its order
    double cost_s = 0;          // of the next run: what the last one took
  };
  static std::optional<TunerResult> measure_next(Task& task, const Measure& measure);

  Clock clock_;
  std::list<Task> tasks_;  // the first may have begun
  std::vector<GemmProblem> seen_;
  double credit_s_ = 0;
};

}  // namespace octet::tune
