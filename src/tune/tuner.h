// Finds the fastest of several ways to the same result by running them against each other.
//
// Every round runs all that are still in, once each, so that a change of clocks or a busy neighbour
// meets all of them; every other round goes backwards, so that nobody is always first. Clearly
// slower candidates leave after the first rounds, where the minimum of a candidate's runs counts:
// first runs load code. The best few then meet in a final that counts its own runs alone: in the
// long first rounds a drift of the clocks puts more between the first and the last of the list than
// there is between good kernels. There the median counts: a GPU at its power limit changes its
// clock from run to run, and by the minimum the luckiest would win.
//
// All of that is measured run by run, with pauses that let a device cool. A model gives it none: at
// its power limit a GPU lowers its clock, kernels that move fewer bytes are then ahead, and the
// order of the best changes. So the best few meet once more under load, where each runs without
// pause for a slice of time, in turns, after a warm-up; the median of a candidate's slices decides.
// Most of what the clock still owes to the kernel before is left out. Slices of one kernel differ
// by up to five percent on an H200, good kernels among each other by less: who is close behind the
// best after the first slices gets more of them.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace octet::tune {

// One way to run a problem, as a backend offers it. Only those that fit the problem are offered.
struct Candidate {
  std::string name;        // printable, its identity in plan files, logs and overrides
  double estimate_us = 0;  // what the backend expects without measuring; only the order counts
  std::string kind;        // variants of one tile have the same; empty: a variant of no other
};

// An order for sorting: lowest estimate first, those that are no number last.
inline bool has_better_estimate(const Candidate& a, const Candidate& b) {
  const auto rank = [](const Candidate& candidate) {
    return std::isnan(candidate.estimate_us) ? std::numeric_limits<double>::infinity()
                                             : candidate.estimate_us;
  };
  return rank(a) < rank(b);
}

// Microseconds of one run of `name`. `turn` is 0 for the first run and grows by one with each:
// whoever keeps more sets of buffers than the last-level cache holds, and takes set `turn` modulo
// their number, never measures a warm cache. Throws Error when the run fails.
using Measure = std::function<double(const std::string& name, int turn)>;

// Microseconds per run of `runs` runs of `name` that follow each other without a pause, over all
// sets of buffers in turn. Throws Error when they fail.
using MeasureUnderLoad = std::function<double(const std::string& name, int runs)>;

struct TunerOptions {
  int most_candidates = 12;  // those with the best estimates are measured, the others are not
  int full_rounds = 3;       // before anyone is dropped: first runs load code, some meet noise
  int rounds = 5;            // in all, without the final
  int finalists = 6;
  int final_rounds = 12;     // even, for as many forwards as backwards
  double first_drop = 1.25;  // who needs more than this times the best goes, after full_rounds
  double later_drop = 1.10;  // and after each later round
  double budget_us = 3e6;    // no run starts once the runs so far took this long together

  // Under load:
  int load_finalists = 4;         // the best, the next of its kind, then the best of other kinds
  double load_drop = 1.08;        // who needs more than this times the best of the final stays out
  int load_rounds = 4;            // even, for as many forwards as backwards
  double load_later_drop = 1.02;  // after two of them goes whose best slice needs more than this
  // Of one candidate in one round. A clock takes about a tenth of a second to follow the power that
  // a kernel draws: shorter slices, which all have one clock, would count cycles and not energy.
  double load_slice_us = 150e3;
  // Before each slice, uncounted, while most of the clock is still its predecessor's.
  double load_settle_us = 50e3;
  double load_warm_up_us = 200e3;  // to the power limit, before the first slice
  double load_shortest_us = 30;    // shorter runs are bound by latency, not by power: no load
  double load_budget_us = 6e6;     // no slice starts once all, with the warm-up, took this long
};

struct TunerResult {
  std::string winner;
  double winner_us = 0;
  std::string runner_up;  // empty when only one candidate could be measured
  double runner_up_us = 0;
  std::map<std::string, double> reference_us;  // without those that failed or were never reached
  bool under_load = false;  // all times; else all are of single runs with cold caches
};

// `references` are other ways to the same result that run in the same rounds, for comparison: they
// never win and are never dropped for being slow. Of equally fast candidates the one with the
// better estimate wins. A candidate that fails is dropped with a debug line, and the next best
// estimate takes its place when it fails in the first round. Throws Error when there are no
// candidates, when all of them fail (with the reason of the first), or for options without sense.
// Without `measure_under_load` the final decides.
TunerResult find_fastest(std::vector<Candidate> candidates,
                         const std::vector<std::string>& references, const Measure& measure,
                         const TunerOptions& options = {},
                         const MeasureUnderLoad& measure_under_load = {});

}  // namespace octet::tune
