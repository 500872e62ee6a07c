// What a device draws, and at which clock it runs.
#pragma once

namespace octet {

// Of one moment; 0: unknown.
struct PowerReading {
  double watts = 0;
  double mhz = 0;  // of the multiprocessors
  double celsius = 0;
  // Why the clock is lower than it could be.
  bool power_capped = false;
  bool too_hot = false;
};

// One thread reads, while others may ask for the rest.
class PowerGauge {
 public:
  virtual ~PowerGauge() = default;
  virtual PowerReading read() = 0;
  virtual double joules() = 0;       // since a moment in the past; 0: unknown
  virtual double limit_watts() = 0;  // that the device keeps to; 0: unknown
};

}  // namespace octet
