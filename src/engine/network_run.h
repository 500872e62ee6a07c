// A network that denoises one kind of picture step by step, as fast as its backend can: work that
// repeats is recorded and replayed. It evaluates one branch, or several as one batch.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/recording.h"
#include "models/part.h"

namespace octet::engine {

class NetworkRun {
 public:
  using Evaluation = models::Network::Evaluation;

  // All arguments outlive it. `stays`: the weights stay on the device all that time; work that
  // copies them there cannot be recorded.
  NetworkRun(nn::Context& ctx, const models::Network& network, models::Timeline& timeline,
             bool stays);
  NetworkRun(const NetworkRun&) = delete;
  NetworkRun& operator=(const NetworkRun&) = delete;

  // The velocities of all evaluations at a step. Once recorded, the work can be stopped only before
  // it begins.
  void velocities(const ConstTensorView& z, int64_t step, std::span<const Evaluation> evaluations);
  void velocity(const ConstTensorView& z, int64_t step, const models::Conditioning& conditioning,
                const TensorView& out) {
    const Evaluation one{&conditioning, out};
    velocities(z, step, {&one, 1});
  }

  // Kernels and copies of a run, see Recording; 0 before the third, and if it is not recorded.
  int64_t launches() const { return recording_ ? recording_->launches() : 0; }

 private:
  void call();
  bool is_recorded(const ConstTensorView& z, std::span<const Evaluation> evaluations) const;

  nn::Context& ctx_;
  const models::Network& network_;
  models::Timeline& timeline_;
  bool can_record_;
  ConstTensorView z_;  // of the latest run, and so of the recording
  std::vector<Evaluation> evaluations_;
  std::unique_ptr<Recording> recording_;
};

}  // namespace octet::engine
