#include "cuda/graph_recording.h"

#include <optional>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "cuda/check.h"
#include "octet/error.h"

namespace octet::cuda {
namespace {

// Captures a stream's work from its construction on; the capture ends with it in any case.
class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) {
    // Only of this thread: others may go on loading.
    check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
               "beginning to record");
  }
  ~Capture() {
    cudaGraph_t rest = nullptr;
    if (is_open_ && cudaStreamEndCapture(stream_, &rest) != cudaSuccess) cudaGetLastError();
    if (rest != nullptr) cudaGraphDestroy(rest);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  cudaGraph_t end() {
    is_open_ = false;
    check_cuda(cudaStreamEndCapture(stream_, &graph_), "recording");
    return graph_;
  }

 private:
  cudaStream_t stream_;
  bool is_open_ = true;
  cudaGraph_t graph_ = nullptr;
};

}  // namespace

void GraphRecording::forget() noexcept {
  if (segments_.empty()) return;
  cudaStreamSynchronize(device_.stream());  // they may still be running
  for (const Segment& segment : segments_) {
    if (segment.graph != nullptr) cudaGraphExecDestroy(segment.graph);
  }
  segments_.clear();
}

void GraphRecording::add_segment(cudaGraph_t graph) {
  Segment& segment = segments_.emplace_back();
  size_t nodes = 0;
  check_cuda(cudaGraphGetNodes(graph, nullptr, &nodes), "counting what was recorded");
  if (nodes == 0) return;
  check_cuda(cudaGraphInstantiateWithFlags(&segment.graph, graph, 0), "making a graph");
  launches_ += static_cast<int64_t>(nodes);
}

bool GraphRecording::capture() {
  forget();
  launches_ = 0;
  if (!reserve()) return false;  // memory cannot be allocated within a capture
  try {
    std::optional<Capture> captured(std::in_place, device_.stream());
    call_unwatched([&](const std::function<void()>& unrecorded) {
      add_segment(captured->end());
      segments_.back().after = unrecorded;
      captured.reset();
      captured.emplace(device_.stream());
    });
    add_segment(captured->end());
    generation_ = device_.generation();
    return true;
  } catch (const Cancelled&) {
    forget();
    throw;
  } catch (const Error& error) {
    // Nothing of it ran.
    log::warning("cuda: steps are launched one op at a time: {}", error.sentence());
    forget();
    launches_ = 0;
    return false;
  }
}

void GraphRecording::run() {
  if (!is_planned() || !can_capture_) return call();
  const Active active(device_.traits().index);
  if (segments_.empty() || generation_ != device_.generation()) can_capture_ = capture();
  if (!can_capture_) return call();
  for (const Segment& segment : segments_) {
    if (segment.graph != nullptr) {
      check_cuda(cudaGraphLaunch(segment.graph, device_.stream()), "running what was recorded");
    }
    if (segment.after) segment.after();
  }
}

}  // namespace octet::cuda
