#include "base/own_file.h"

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

namespace octet {

// Not by dladdr(), which names a program by the word that it was called with.
std::optional<std::filesystem::path> own_file() {
  const auto here = reinterpret_cast<uintptr_t>(&own_file);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::string permissions, offset, device, inode, path;
    words >> std::hex >> begin >> dash >> end >> permissions >> offset >> device >> inode;
    if (here < begin || here >= end) continue;
    std::getline(words >> std::ws, path);  // may have spaces
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
    return std::filesystem::path(path);
  }
  return std::nullopt;
}

}  // namespace octet
