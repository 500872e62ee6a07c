// What backends share whose memory is the host's own and whose work is done when the call returns.
#pragma once

#include <cstring>

#include "backend/backend.h"
#include "base/stopwatch.h"

namespace octet {

class HostBackend : public Backend {
 public:
  Buffer allocate(size_t bytes) override { return allocate_host(bytes); }
  void copy_to_device(std::byte* device, const std::byte* host, size_t bytes) override {
    if (bytes > 0) std::memcpy(device, host, bytes);
  }
  void copy_to_host(std::byte* host, const std::byte* device, size_t bytes) override {
    if (bytes > 0) std::memcpy(host, device, bytes);
  }
  void copy(std::byte* to, const std::byte* from, size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void synchronize() override {}
  double time_us(const std::function<void()>& work) override {
    const Stopwatch watch;
    work();
    return watch.microseconds();
  }
};

}  // namespace octet
