// Makes a backend by the name of its device. The only layer that names ref, cpu and cuda.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "octet/devices.h"
#include "tune/planner.h"

namespace octet {

struct DeviceRequest {
  std::string device = "auto";                    // auto, ref, cpu, cuda[:i]
  int threads = 0;                                // of Backend::pool(); 0: one per physical core
  tune::TuneMode tune = tune::TuneMode::missing;  // of backends that choose kernels by measuring
  bool refines = false;  // measures what is missing in Backend::refine(), not before the first use
  // Of CUDA, a cudaStream_t of the caller to work on, which must outlive the backend and its
  // buffers; null: one of its own. (The legacy default stream is cudaStreamLegacy here.)
  void* stream = nullptr;
  uint64_t memory_limit = 0;  // bytes of the device's own memory, see Backend::memory_limit()
};

// The devices that a text names: itself, or two of a kind with a comma between them, as
// "cuda:0,cuda:1". Throws InvalidRequest for other lists; whether the devices exist is not asked.
std::vector<std::string> device_list(const std::string& text);

// Throws Error when there is no such device or it has no INT8 path, saying what to use instead.
// `auto` takes the best that works. OCTET_FORCE_KERNEL is obeyed.
std::unique_ptr<Backend> select_backend(const DeviceRequest& request);

// As octet::list_devices() says.
std::vector<DeviceInfo> find_devices();

}  // namespace octet
