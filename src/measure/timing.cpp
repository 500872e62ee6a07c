#include "measure/timing.h"

#include <algorithm>

#include "base/stopwatch.h"

namespace octet::measure {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<double> time_in_turns(Backend& backend, const std::vector<std::function<void()>>& works,
                                  double seconds, int min_rounds,
                                  const std::function<void()>& after_round) {
  for (const auto& work : works) backend.time_us(work);
  std::vector<std::vector<double>> times(works.size());
  const Stopwatch watch;
  for (int round = 0; round < min_rounds || watch.microseconds() < seconds * 1e6; ++round) {
    for (size_t turn = 0; turn < works.size(); ++turn) {
      const size_t index = round % 2 == 0 ? turn : works.size() - 1 - turn;
      times[index].push_back(backend.time_us(works[index]));
    }
    if (after_round) after_round();
  }
  std::vector<double> medians;
  for (auto& values : times) medians.push_back(median(std::move(values)));
  return medians;
}

}  // namespace octet::measure
