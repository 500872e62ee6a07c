#include "cuda/graph_recording.h"

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
  if (graph_ == nullptr) return;
  cudaStreamSynchronize(device_.stream());  // it may still be running
  cudaGraphExecDestroy(std::exchange(graph_, nullptr));
}

bool GraphRecording::capture() {
  forget();
  if (!reserve()) return false;  // memory cannot be allocated within a capture
  try {
    Capture captured(device_.stream());
    call_unwatched();
    cudaGraph_t graph = captured.end();
    size_t nodes = 0;
    check_cuda(cudaGraphGetNodes(graph, nullptr, &nodes), "counting what was recorded");
    check_cuda(cudaGraphInstantiateWithFlags(&graph_, graph, 0), "making a graph");
    launches_ = static_cast<int64_t>(nodes);
    generation_ = device_.generation();
    return true;
  } catch (const Cancelled&) {
    throw;
  } catch (const Error& error) {
    // Nothing of it ran.
    log::warning("cuda: steps are launched one op at a time: {}", error.sentence());
    launches_ = 0;
    return false;
  }
}

void GraphRecording::run() {
  if (!is_planned() || !can_capture_) return call();
  const Active active(device_.traits().index);
  if (graph_ == nullptr || generation_ != device_.generation()) can_capture_ = capture();
  if (!can_capture_) return call();
  check_cuda(cudaGraphLaunch(graph_, device_.stream()), "running what was recorded");
}

}  // namespace octet::cuda
