// A moment in the order of a stream's work, without a time.
#pragma once

#include <cuda_runtime_api.h>

#include <utility>

#include "cuda/check.h"

namespace octet::cuda {

// Of the device that is current when it is made.
class Event {
 public:
  Event() {
    check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making an event");
  }
  ~Event() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // From now on it marks the end of the stream's work so far.
  void record(cudaStream_t stream) { check_cuda(cudaEventRecord(event_, stream), "recording"); }
  // Later work on the stream waits for it; if it was never recorded, for nothing.
  void hold(cudaStream_t stream) const {
    check_cuda(cudaStreamWaitEvent(stream, event_, 0), "making a stream wait");
  }
  void synchronize() const { check_cuda(cudaEventSynchronize(event_), "waiting for an event"); }
  bool has_passed() const {
    const cudaError_t status = cudaEventQuery(event_);
    if (status != cudaErrorNotReady) {
      check_cuda(status, "asking for an event");
      return true;
    }
    cudaGetLastError();  // not an error: the next call must not see it
    return false;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace octet::cuda
