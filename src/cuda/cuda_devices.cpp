#include "cuda/cuda_devices.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

namespace octet {
namespace {

std::string version_text(int version) {
  return version == 0 ? "" : fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

CudaDevice describe(int index) {
  cudaDeviceProp properties = {};
  CudaDevice device;
  device.index = index;
  if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) {
    cudaGetLastError();  // clears it: one broken device must not taint the next call
    device.name = "a device whose properties cannot be read";
    return device;
  }
  device.name = properties.name;
  device.major = properties.major;
  device.minor = properties.minor;
  device.multiprocessors = properties.multiProcessorCount;
  device.memory_bytes = properties.totalGlobalMem;
  device.shared_bytes_per_block = properties.sharedMemPerBlockOptin;
  return device;
}

}  // namespace

CudaDevices find_cuda_devices() {
  CudaDevices found;
  int version = 0;
  if (cudaRuntimeGetVersion(&version) == cudaSuccess) found.runtime = version_text(version);
  version = 0;
  if (cudaDriverGetVersion(&version) == cudaSuccess) found.driver = version_text(version);
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    cudaGetLastError();
    found.problem = found.driver.empty() ? "no NVIDIA driver is loaded"
                                         : fmt::format("CUDA says: {}", cudaGetErrorString(status));
    return found;
  }
  for (int index = 0; index < count; ++index) found.devices.push_back(describe(index));
  if (found.devices.empty()) found.problem = "the NVIDIA driver shows no GPU";
  return found;
}

std::string why_unsupported(int major, int minor) {
  // sm_75 has INT8 tensor cores, but neither cp.async nor m16n8k32.
  if (major >= 8) return "";
  return fmt::format(
      "its compute capability {}.{} is below 8.0, the first with the instructions that kernels use",
      major, minor);
}

}  // namespace octet
