// A GPU's power, clock and temperature, as NVIDIA's management library tells them.
#pragma once

#include <memory>

#include "backend/power_gauge.h"

namespace octet::cuda {

// Of the CUDA device with this index, whatever number the library gives it. Throws Error where the
// library is not there or does not know the GPU.
std::unique_ptr<PowerGauge> open_nvml_gauge(int index);

}  // namespace octet::cuda
