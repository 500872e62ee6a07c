// Work whose launches are kept as a CUDA graph: one driver call runs all of them again.
#pragma once

#include <cuda_runtime_api.h>

#include "backend/recording.h"
#include "cuda/device.h"

namespace octet::cuda {

// The first run calls the work and plans its memory; the second captures what it launches. Nothing
// may wait for the device meanwhile, so one-time work, such as choosing kernels, has to be done by
// then. Work that cannot be captured is called each time.
class GraphRecording final : public Recording {
 public:
  GraphRecording(Backend& backend, Device& device, std::function<void()> work)
      : Recording(backend, std::move(work)), device_(device) {}
  ~GraphRecording() override { forget(); }

  void run() override;
  int64_t launches() const override { return launches_; }

 private:
  // False if it cannot be captured.
  bool capture();
  void forget() noexcept;

  Device& device_;
  cudaGraphExec_t graph_ = nullptr;
  uint64_t generation_ = 0;  // of the device's workspaces that it uses
  int64_t launches_ = 0;
  bool can_capture_ = true;
};

}  // namespace octet::cuda
