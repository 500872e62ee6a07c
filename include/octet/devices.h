// The devices of this machine.
//
//   for (const octet::DeviceInfo& device : octet::list_devices())
//     std::cout << device.name << ": " << device.description << "\n";
#pragma once

#include <vector>

#include "octet/device_info.h"
#include "octet/export.h"

namespace octet {

// Every device that exists here. A build without CUDA, or a machine without a usable GPU, gives one
// "cuda" entry whose `unavailable` says so.
OCTET_API std::vector<DeviceInfo> list_devices();

// The largest number that `threads` of a request may be: four for each hardware thread, or 64.
OCTET_API int max_threads();

}  // namespace octet
