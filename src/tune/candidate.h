// One way to run a problem, as a backend offers it. Only those that fit the problem are offered.
#pragma once

#include <cmath>
#include <limits>
#include <string>

namespace octet::tune {

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

}  // namespace octet::tune
