// Power drawn by a device during a measurement.
#pragma once

namespace octet {

// All 0 if the device does not report it: a CPU, or a GPU without NVML.
struct PowerUse {
  int samples = 0;  // 50 ms apart
  double mean_w = 0, max_w = 0;
  double limit_w = 0;   // the device's power limit
  double joules = 0;    // total
  double mean_mhz = 0;  // clock of the multiprocessors
  double max_celsius = 0;
  double power_capped = 0;  // share of the samples in which the power limit lowered the clock
  double too_hot = 0;       // share in which heat did

  bool is_known() const { return samples > 0; }
};

}  // namespace octet
