// What devices have drawn since a moment, by their own counters.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "backend/power_gauge.h"

namespace octet {
class Backend;
}

namespace octet::api {

using PowerGauges = std::vector<std::unique_ptr<PowerGauge>>;

// One for each device; null where it has none, or what reads it is missing.
PowerGauges gauges_of(const std::vector<std::unique_ptr<Backend>>& backends);

// Any thread may ask.
class EnergyCount {
 public:
  explicit EnergyCount(PowerGauges gauges);

  double joules();  // of all since this was made; 0: unknown of one

 private:
  struct Counter {
    std::unique_ptr<PowerGauge> gauge;
    double begin = 0;
  };
  static double count_of(const Counter& counter) noexcept;

  std::mutex mutex_;  // a gauge is read by one thread at a time
  std::vector<Counter> counters_;
};

}  // namespace octet::api
