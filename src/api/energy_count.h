// What a device has drawn since a moment, by its own counter.
#pragma once

#include <memory>
#include <mutex>

#include "backend/power_gauge.h"

namespace octet {
class Backend;
}

namespace octet::api {

// Null where the device has none, or what reads it is missing.
std::unique_ptr<PowerGauge> gauge_of(Backend& backend);

// Any thread may ask.
class EnergyCount {
 public:
  explicit EnergyCount(std::unique_ptr<PowerGauge> gauge);

  double joules();  // since this was made; 0: unknown

 private:
  double counted() noexcept;

  std::mutex mutex_;  // a gauge is read by one thread at a time
  std::unique_ptr<PowerGauge> gauge_;
  double begin_ = 0;
};

}  // namespace octet::api
