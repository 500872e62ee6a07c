// What a device drew while it was measured.
#pragma once

namespace octet {

// All 0 where the device does not tell: a CPU, or a GPU without NVML.
struct PowerUse {
  int samples = 0;  // in the time, 50 ms apart
  double mean_w = 0, max_w = 0;
  double limit_w = 0;   // that the device keeps to
  double joules = 0;    // in all
  double mean_mhz = 0;  // clock of the multiprocessors
  double max_celsius = 0;
  double power_capped = 0;  // share of the samples in which the power limit lowered the clock
  double too_hot = 0;       // and heat

  bool is_known() const { return samples > 0; }
};

}  // namespace octet
