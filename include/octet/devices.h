// The devices of this machine.
//
//   for (const octet::DeviceInfo& device : octet::list_devices())
//     std::cout << device.name << ": " << device.description << "\n";
#pragma once

#include <vector>

#include "octet/device_info.h"
#include "octet/export.h"

namespace octet {

// All devices of this machine. A build without CUDA, or a machine without a usable GPU, has one
// "cuda" entry whose `unavailable` says so.
OCTET_API std::vector<DeviceInfo> list_devices();

// The largest allowed `threads` of a request: four per hardware thread, or 64.
OCTET_API int max_threads();

}  // namespace octet
