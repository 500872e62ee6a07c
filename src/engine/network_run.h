// A network that denoises one kind of picture step by step, as fast as its backend can: the same
// work each time is recorded and run again.
#pragma once

#include <memory>

#include "backend/recording.h"
#include "models/part.h"

namespace octet::engine {

class NetworkRun {
 public:
  // All outlive it. `stays`: the weights are where the network runs for as long; work that brings
  // them cannot be recorded.
  NetworkRun(nn::Context& ctx, const models::Network& network,
             const models::Conditioning& conditioning, models::Timeline& timeline, bool stays);
  NetworkRun(const NetworkRun&) = delete;
  NetworkRun& operator=(const NetworkRun&) = delete;

  // The velocity at a step. Where it is recorded, the work stops on request before it begins, and
  // not within it.
  void velocity(const ConstTensorView& z, int64_t step, const TensorView& out);

  // Kernels and copies of a velocity, see Recording; 0 before the third, and where it is called op
  // by op.
  int64_t launches() const { return recording_ ? recording_->launches() : 0; }

 private:
  void call(const ConstTensorView& z, const TensorView& out) {
    network_.velocity(ctx_, conditioning_, timeline_, z, out);
  }

  nn::Context& ctx_;
  const models::Network& network_;
  const models::Conditioning& conditioning_;
  models::Timeline& timeline_;
  bool can_record_;
  ConstTensorView z_;  // that were recorded
  TensorView out_;
  std::unique_ptr<Recording> recording_;
};

}  // namespace octet::engine
