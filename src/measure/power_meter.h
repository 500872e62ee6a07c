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
#include "octet/tools/power_use.h"

namespace octet::measure {

class PowerMeter {
 public:
  // Where the device should tell and does not, a warning says why, and nothing is measured.
  explicit PowerMeter(Backend& backend);
  // Of this gauge; null: nothing is measured. The device's own counter misses nothing, but moves in
  // steps of up to a tenth of a second: it counts from `counted_from_s` seconds on.
  explicit PowerMeter(std::unique_ptr<PowerGauge> gauge, double counted_from_s = 1)
      : gauge_(std::move(gauge)), counted_from_s_(counted_from_s) {}
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
  double counted_from_s_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;
  std::thread thread_;
  std::vector<PowerReading> readings_;
  Stopwatch watch_;
  double joules_ = 0;  // at the start
};

}  // namespace octet::measure
