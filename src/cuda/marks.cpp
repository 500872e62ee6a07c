#include "cuda/marks.h"

#include "base/error.h"
#include "cuda/check.h"

namespace octet::cuda {

Marks::~Marks() {
  for (cudaEvent_t event : events_) cudaEventDestroy(event);
}

size_t Marks::mark(cudaStream_t stream) {
  const Active active(device_.traits().index);
  if (used_ == events_.size()) {
    cudaEvent_t event = nullptr;
    check_cuda(cudaEventCreate(&event), "making an event");
    events_.push_back(event);
  }
  check_cuda(cudaEventRecord(events_[used_], stream), "recording an event");
  return used_++;
}

double Marks::microseconds_between(size_t begin, size_t end) const {
  check(begin < used_ && end < used_, "marks {} and {} were requested, but there are {}", begin,
        end, used_);
  const Active active(device_.traits().index);
  check_cuda(cudaEventSynchronize(events_[begin]), "waiting for the GPU");
  check_cuda(cudaEventSynchronize(events_[end]), "waiting for the GPU");
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, events_[begin], events_[end]), "reading an event");
  return milliseconds * 1e3;
}

}  // namespace octet::cuda
