#include "measure/free_memory.h"

#include <fstream>
#include <optional>

#include "backend/host_backend.h"
#include "base/error.h"

namespace octet::measure {

std::optional<double> available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  double kilobytes = 0;
  for (std::string unit; file >> key >> kilobytes; std::getline(file, unit)) {
    if (key == "MemAvailable:") return kilobytes * 1024;
  }
  return std::nullopt;
}

bool keeps_data_on_host(const Backend& backend) {
  return dynamic_cast<const HostBackend*>(&backend) != nullptr;
}

void check_free_memory(const std::string& what, double bytes) {
  const auto available = available_bytes();
  check(!available || bytes <= *available,
        "{} needs about {:.1f} GB of memory, and {:.1f} GB are free; take something smaller", what,
        bytes * 1e-9, available.value_or(0) * 1e-9);
}

}  // namespace octet::measure
