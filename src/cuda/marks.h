// Moments in the order of a device's streams: events that are made once and used again.
#pragma once

#include <cstddef>
#include <vector>

#include "cuda/device.h"

namespace octet::cuda {

class Marks {
 public:
  explicit Marks(Device& device) : device_(device) {}
  ~Marks();
  Marks(const Marks&) = delete;
  Marks& operator=(const Marks&) = delete;

  size_t mark(cudaStream_t stream);
  // Waits for both.
  double microseconds_between(size_t begin, size_t end) const;
  void forget() { used_ = 0; }

 private:
  Device& device_;
  std::vector<cudaEvent_t> events_;
  size_t used_ = 0;  // of the events, from the first
};

}  // namespace octet::cuda
