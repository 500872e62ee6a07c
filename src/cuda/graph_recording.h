// Work whose launches are kept as a CUDA graph: one driver call runs all of them again.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "backend/recording.h"
#include "cuda/device.h"

namespace octet::cuda {

// The first run calls the work and plans its memory; the second captures what it launches. Nothing
// may wait for the device meanwhile, so one-time work, such as choosing kernels, has to be done by
// then. Work that cannot be captured is called each time.
//
// Unrecorded work within it ends one graph and begins the next. (Copies of weights as nodes of a
// single graph were not chosen: a graph ends with all of its nodes, so the first weights of the
// next pass could not be on their way while the last layers of this one run.)
class GraphRecording final : public Recording {
 public:
  GraphRecording(Backend& backend, Device& device, std::function<void()> work)
      : Recording(backend, std::move(work)), device_(device) {}
  ~GraphRecording() override { forget(); }

  void run() override;
  int64_t launches() const override { return launches_; }

 private:
  struct Segment {
    cudaGraphExec_t graph = nullptr;  // null: nothing was launched
    std::function<void()> after;      // unrecorded work, or none
  };

  // False if it cannot be captured.
  bool capture();
  void add_segment(cudaGraph_t graph);
  void forget() noexcept;

  Device& device_;
  std::vector<Segment> segments_;
  uint64_t generation_ = 0;  // of the device's workspaces that it uses
  int64_t launches_ = 0;
  bool can_capture_ = true;
};

}  // namespace octet::cuda
