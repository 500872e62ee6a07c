#include "base/env.h"

#include <cstdlib>
#include <sstream>

namespace octet::env {
namespace {

std::optional<std::string> read(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

}  // namespace

std::optional<std::string> force_kernel() { return read("OCTET_FORCE_KERNEL"); }

std::optional<std::filesystem::path> cache_dir() {
  using std::filesystem::path;
  if (const auto own = read("OCTET_CACHE_DIR")) return path(*own);
  if (const auto shared = read("XDG_CACHE_HOME"); shared && path(*shared).is_absolute()) {
    return path(*shared) / "octet";
  }
  if (const auto home = read("HOME")) return path(*home) / ".cache" / "octet";
  return std::nullopt;
}

std::optional<std::string> cache_max_gb() { return read("OCTET_CACHE_MAX_GB"); }

std::optional<std::string> log() { return read("OCTET_LOG"); }

bool trace(const std::string& topic) {
  const auto topics = read("OCTET_TRACE");
  if (!topics) return false;
  std::istringstream list(*topics);
  for (std::string entry; std::getline(list, entry, ',');) {
    if (entry == topic) return true;
  }
  return false;
}

}  // namespace octet::env
