// Timing several pieces of work against each other, whether the figures can be believed, and the
// ceilings of a device that they are held against.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "backend/backend.h"
#include "octet/tools/steadiness.h"

namespace octet::measure {

// Between the two nearest of sorted numbers, linearly.
double quantile(const std::vector<double>& sorted, double share);

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

// --- whether the figures of a measurement can be believed

// Of a machine that does nothing else it is below 0.05; a busy neighbour makes it 0.3 and more.
inline constexpr double kMostSpread = 0.15;

// Fewer say nothing about it.
inline constexpr size_t kFewestRounds = 3;

inline Steadiness steadiness_of(const std::vector<Timing>& timings) {
  Steadiness steadiness;
  for (const Timing& timing : timings) {
    steadiness.spread = std::max(steadiness.spread, timing.spread);
    steadiness.reliable = steadiness.reliable && timing.rounds >= kFewestRounds;
  }
  steadiness.reliable = steadiness.reliable && steadiness.spread <= kMostSpread;
  return steadiness;
}

// Nothing runs faster than its ceiling, but for what a clock that rises in between explains.
inline bool is_possible(double share_of_ceiling) { return share_of_ceiling <= 1.05; }

// --- what a device can reach, measured, and how near work comes to it

// Per second; 0: unknown.
struct Ceilings {
  double int8 = 0;  // operations of products of INT8 codes
  double bf16 = 0;  // and of BF16
  double copy = 0;  // bytes, read and written, of a large copy within the device's memory
};

// Takes half a gigabyte of a GPU's memory for a moment.
Ceilings measure_ceilings(Backend& backend);

// The share of its time that work would take at the ceilings: its products, each kind at its own,
// or the bytes that it moves, whichever takes longer. 0 where a ceiling is unknown, as that of
// products in F32. May pass 1 where bytes are still in a cache.
double ceiling_share(const OpWork& work, double us, DType dtype, const Ceilings& ceilings);

}  // namespace octet::measure
