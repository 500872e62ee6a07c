#include "octet/devices.h"

#include "api/boundary.h"
#include "base/thread_pool.h"
#include "devices/select.h"

namespace octet {

std::vector<DeviceInfo> list_devices() try { return find_devices(); } catch (...) {
  api::rethrow_as_error();
}

int max_threads() try { return most_threads(); } catch (...) {
  api::rethrow_as_error();
}

}  // namespace octet
