#include "measure/timing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/gemm_tuning.h"
#include "base/stopwatch.h"

namespace octet::measure {

Timing timing_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  // Between the two values at whose side the quantile lies.
  const auto quantile = [&values](double share) {
    const double place = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, values.size() - 1);
    return std::lerp(values[below], values[above], place - static_cast<double>(below));
  };
  Timing timing;
  timing.rounds = values.size();
  timing.median = quantile(0.5);
  if (timing.median > 0) timing.spread = (quantile(0.75) - quantile(0.25)) / timing.median;
  return timing;
}

std::vector<Timing> time_in_turns(Backend& backend, const std::vector<std::function<void()>>& works,
                                  double seconds, int min_rounds,
                                  const std::function<void()>& after_round) {
  GemmTuning& clock = backend.tuning();
  for (const auto& work : works) clock.time_us(work);
  std::vector<std::vector<double>> times(works.size());
  const Stopwatch watch;
  for (int round = 0; round < min_rounds || watch.microseconds() < seconds * 1e6; ++round) {
    for (size_t turn = 0; turn < works.size(); ++turn) {
      const size_t index = round % 2 == 0 ? turn : works.size() - 1 - turn;
      times[index].push_back(clock.time_us(works[index]));
    }
    if (after_round) after_round();
  }
  std::vector<Timing> timings;
  for (auto& values : times) timings.push_back(timing_of(std::move(values)));
  return timings;
}

}  // namespace octet::measure
