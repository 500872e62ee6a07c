// Timing several pieces of work against each other.
#pragma once

#include <functional>
#include <vector>

#include "backend/backend.h"

namespace octet::measure {

// Repeated measurements of one thing.
struct Timing {
  double median = 0;
  double spread = 0;  // interquartile range over the median
  size_t rounds = 0;
};
Timing timing_of(std::vector<double> values);

// Microseconds of each work, run in turns: a change of the clock or a noisy neighbour hits
// all of them alike. The order is reversed in every other round. One round warms up; then at least
// `min_rounds` rounds and `seconds`, whichever is more. `after_round` is called untimed: for what
// changes with the machine's state but has a clock of its own.
std::vector<Timing> time_in_turns(Backend& backend, const std::vector<std::function<void()>>& works,
                                  double seconds, int min_rounds = 7,
                                  const std::function<void()>& after_round = {});

}  // namespace octet::measure
