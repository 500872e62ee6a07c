#include "api/energy_count.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "backend/gemm_tuning.h"
#include "base/log.h"

namespace octet::api {

PowerGauges gauges_of(const std::vector<std::unique_ptr<Backend>>& backends) {
  PowerGauges gauges;
  std::set<std::string> known;
  for (const auto& backend : backends) {
    if (!known.insert(backend->name()).second) continue;
    std::unique_ptr<PowerGauge>& gauge = gauges.emplace_back();
    try {
      gauge = backend->tuning().power_gauge();
    } catch (const Error& error) {
      log::debug("energy is not counted: {}", error.sentence());
    }
  }
  return gauges;
}

EnergyCount::EnergyCount(PowerGauges gauges) {
  for (auto& gauge : gauges) {
    Counter& counter = counters_.emplace_back(Counter{std::move(gauge)});
    counter.begin = count_of(counter);
  }
}

double EnergyCount::count_of(const Counter& counter) noexcept {
  try {
    return counter.gauge != nullptr ? counter.gauge->joules() : 0;
  } catch (...) {  // a device without a counter
    return 0;
  }
}

double EnergyCount::joules() {
  const std::lock_guard lock(mutex_);
  double sum = 0;
  for (const Counter& counter : counters_) {
    if (counter.begin <= 0) return 0;
    sum += std::max(count_of(counter) - counter.begin, 0.0);
  }
  return sum;
}

}  // namespace octet::api
