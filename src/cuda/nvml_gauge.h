// A GPU's power, clock and temperature, as reported by NVIDIA's management library.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/power_gauge.h"

namespace octet::cuda {

// For the CUDA device with this index, whatever number the library gives it. Throws Error if the
// library is missing or does not know the GPU.
std::unique_ptr<PowerGauge> open_nvml_gauge(int index);

// Bytes of its memory that are in use, by anybody; 0: unknown. Makes no context on the device.
uint64_t used_memory(int index);

}  // namespace octet::cuda
