// What backends share whose memory is the host's own and whose work is done when the call returns.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/memory_counter.h"
#include "base/stopwatch.h"

namespace octet {

class HostBackend : public Backend {
 public:
  Buffer allocate(size_t bytes) override { return counter_->count(allocate_host(bytes)); }
  MemoryUse memory() const override { return counter_->use(); }
  void reset_peak() override { counter_->reset_peak(); }
  size_t mark() override {
    marks_.push_back(clock_.microseconds());
    return marks_.size() - 1;
  }
  double microseconds_between(size_t begin, size_t end) override {
    return marks_.at(end) - marks_.at(begin);
  }
  void forget_marks() override { marks_.clear(); }
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

 private:
  std::shared_ptr<MemoryCounter> counter_ = std::make_shared<MemoryCounter>();
  Stopwatch clock_;
  std::vector<double> marks_;
};

// False for a device with memory of its own: there the host only holds what is on its way.
inline bool keeps_data_on_host(const Backend& backend) {
  return dynamic_cast<const HostBackend*>(&backend) != nullptr;
}

}  // namespace octet
