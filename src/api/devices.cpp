#include "octet/devices.h"

#include "base/thread_pool.h"
#include "devices/select.h"
#include "formats/boundary.h"

namespace octet {

std::vector<DeviceInfo> list_devices() try { return find_devices(); } catch (...) {
  rethrow_as_error();
}

int max_threads() try { return most_threads(); } catch (...) {
  rethrow_as_error();
}

}  // namespace octet
