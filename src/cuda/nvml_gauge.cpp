#include "cuda/nvml_gauge.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "base/error.h"
#include "base/never_destroyed.h"
#include "cuda/check.h"

namespace octet::cuda {
namespace {

// The few functions and numbers of nvml.h that are needed. The library comes with the driver, but
// its header with a separate package, which nobody should have to install for this.
struct NvmlDevice;
using NvmlResult = int;
constexpr NvmlResult kNvmlSuccess = 0;
constexpr int kNvmlClockSm = 1, kNvmlGpuTemperature = 0;
constexpr unsigned kNvmlPowerInstant = 186;
constexpr unsigned long long kNvmlPowerCap = 0x4, kNvmlPowerBrake = 0x80, kNvmlHotSoftware = 0x20,
                             kNvmlHotHardware = 0x40;

struct NvmlFieldValue {
  unsigned field = 0, scope = 0;
  long long timestamp = 0, latency_us = 0;
  int type = 0;
  NvmlResult result = 0;
  union {
    unsigned value;
    unsigned long long widest = 0;
  };
};

struct NvmlMemory {
  unsigned long long total = 0, free = 0, used = 0;
};

struct NvmlLibrary {
  NvmlResult (*nvmlInit_v2)() = nullptr;
  const char* (*nvmlErrorString)(NvmlResult) = nullptr;
  NvmlResult (*nvmlDeviceGetHandleByPciBusId_v2)(const char*, NvmlDevice**) = nullptr;
  NvmlResult (*nvmlDeviceGetPowerUsage)(NvmlDevice*, unsigned*) = nullptr;
  NvmlResult (*nvmlDeviceGetFieldValues)(NvmlDevice*, int, NvmlFieldValue*) = nullptr;
  NvmlResult (*nvmlDeviceGetTotalEnergyConsumption)(NvmlDevice*, unsigned long long*) = nullptr;
  NvmlResult (*nvmlDeviceGetEnforcedPowerLimit)(NvmlDevice*, unsigned*) = nullptr;
  NvmlResult (*nvmlDeviceGetMemoryInfo)(NvmlDevice*, NvmlMemory*) = nullptr;
  NvmlResult (*nvmlDeviceGetClockInfo)(NvmlDevice*, int, unsigned*) = nullptr;
  NvmlResult (*nvmlDeviceGetTemperature)(NvmlDevice*, int, unsigned*) = nullptr;
  NvmlResult (*nvmlDeviceGetCurrentClocksThrottleReasons)(NvmlDevice*,
                                                          unsigned long long*) = nullptr;
  std::string problem;

  // Opened once, and never closed: NVML may not be shut down under another user in this process.
  NvmlLibrary() {
    constexpr const char* kName = "libnvidia-ml.so.1";
    void* library = ::dlopen(kName, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      problem = fmt::format("{} was not found; it comes with the driver", kName);
      return;
    }
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(library, name));
      if (function == nullptr) problem = fmt::format("{} has no {}", kName, name);
    };
#define OCTET_NVML(name) find(name, #name)
    OCTET_NVML(nvmlInit_v2);
    OCTET_NVML(nvmlErrorString);
    OCTET_NVML(nvmlDeviceGetHandleByPciBusId_v2);
    OCTET_NVML(nvmlDeviceGetPowerUsage);
    OCTET_NVML(nvmlDeviceGetFieldValues);
    OCTET_NVML(nvmlDeviceGetTotalEnergyConsumption);
    OCTET_NVML(nvmlDeviceGetEnforcedPowerLimit);
    OCTET_NVML(nvmlDeviceGetMemoryInfo);
    OCTET_NVML(nvmlDeviceGetClockInfo);
    OCTET_NVML(nvmlDeviceGetTemperature);
    OCTET_NVML(nvmlDeviceGetCurrentClocksThrottleReasons);
#undef OCTET_NVML
    if (!problem.empty()) return;
    const NvmlResult result = nvmlInit_v2();
    if (result != kNvmlSuccess) {
      problem = fmt::format("NVML does not start: {}", nvmlErrorString(result));
    }
  }
};

const NvmlLibrary& nvml_library() {
  static const auto& library = never_destroyed<NvmlLibrary>();
  return library;
}

class NvmlGauge final : public PowerGauge {
 public:
  NvmlGauge(const NvmlLibrary& nvml, NvmlDevice* device) : nvml_(nvml), device_(device) {}

  PowerReading read() override {
    PowerReading reading;
    reading.watts = watts();
    reading.mhz = ask(nvml_.nvmlDeviceGetClockInfo, kNvmlClockSm);
    reading.celsius = ask(nvml_.nvmlDeviceGetTemperature, kNvmlGpuTemperature);
    unsigned long long reasons = 0;
    if (nvml_.nvmlDeviceGetCurrentClocksThrottleReasons(device_, &reasons) == kNvmlSuccess) {
      reading.power_capped = (reasons & (kNvmlPowerCap | kNvmlPowerBrake)) != 0;
      reading.too_hot = (reasons & (kNvmlHotSoftware | kNvmlHotHardware)) != 0;
    }
    return reading;
  }
  double joules() override {
    unsigned long long millijoules = 0;
    const auto result = nvml_.nvmlDeviceGetTotalEnergyConsumption(device_, &millijoules);
    return result == kNvmlSuccess ? static_cast<double>(millijoules) * 1e-3 : 0;
  }
  double limit_watts() override {
    unsigned milliwatts = 0;
    const auto result = nvml_.nvmlDeviceGetEnforcedPowerLimit(device_, &milliwatts);
    return result == kNvmlSuccess ? milliwatts * 1e-3 : 0;
  }

 private:
  template <class Function>
  double ask(Function function, int what) const {
    unsigned value = 0;
    return function(device_, what, &value) == kNvmlSuccess ? value : 0;
  }

  // Since Ampere the plain query returns the mean of the last second.
  double watts() const {
    NvmlFieldValue instant;
    instant.field = kNvmlPowerInstant;
    const auto asked = nvml_.nvmlDeviceGetFieldValues(device_, 1, &instant);
    if (asked == kNvmlSuccess && instant.result == kNvmlSuccess) return instant.value * 1e-3;
    unsigned milliwatts = 0;
    const auto result = nvml_.nvmlDeviceGetPowerUsage(device_, &milliwatts);
    return result == kNvmlSuccess ? milliwatts * 1e-3 : 0;
  }

  const NvmlLibrary& nvml_;
  NvmlDevice* device_;
};

NvmlDevice* device_of(const NvmlLibrary& nvml, int index) {
  check(nvml.problem.empty(), "{}", nvml.problem);
  char bus_id[32] = {};
  check_cuda(cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), index), "asking for the PCI bus");
  NvmlDevice* device = nullptr;
  const NvmlResult result = nvml.nvmlDeviceGetHandleByPciBusId_v2(bus_id, &device);
  check(result == kNvmlSuccess, "NVML does not know the GPU at {}: {}", bus_id,
        nvml.nvmlErrorString(result));
  return device;
}

}  // namespace

std::unique_ptr<PowerGauge> open_nvml_gauge(int index) {
  const NvmlLibrary& nvml = nvml_library();
  return std::make_unique<NvmlGauge>(nvml, device_of(nvml, index));
}

uint64_t used_memory(int index) try {
  const NvmlLibrary& nvml = nvml_library();
  NvmlMemory memory;
  const auto result = nvml.nvmlDeviceGetMemoryInfo(device_of(nvml, index), &memory);
  return result == kNvmlSuccess ? memory.used : 0;
} catch (const Error&) {
  return 0;
}

}  // namespace octet::cuda
