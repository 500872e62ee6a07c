// Whether the figures of a measurement can be believed.
#pragma once

#include <algorithm>
#include <vector>

#include "measure/timing.h"
#include "octet/tools/steadiness.h"

namespace octet::measure {

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

}  // namespace octet::measure
