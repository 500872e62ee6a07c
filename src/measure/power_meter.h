// Samples what a device draws while it works.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "backend/backend.h"
#include "backend/power_gauge.h"
#include "base/stopwatch.h"
#include "octet/power_use.h"

namespace octet::measure {

class PowerMeter {
 public:
  // Where the device should tell and does not, a warning says why, and nothing is measured.
  explicit PowerMeter(Backend& backend);
  // Of this gauge; null: nothing is measured.
  explicit PowerMeter(std::unique_ptr<PowerGauge> gauge) : gauge_(std::move(gauge)) {}
  ~PowerMeter() { end_sampling(); }
  PowerMeter(const PowerMeter&) = delete;
  PowerMeter& operator=(const PowerMeter&) = delete;

  // Samples from now on, at once and then every 50 ms, on a thread of its own.
  void start();
  // What was drawn since then.
  PowerUse stop();

 private:
  void sample();
  void end_sampling();

  std::unique_ptr<PowerGauge> gauge_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;
  std::thread thread_;
  std::vector<PowerReading> readings_;
  Stopwatch watch_;
  double joules_ = 0;  // at the start
};

}  // namespace octet::measure
