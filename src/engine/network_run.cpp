#include "engine/network_run.h"

#include "base/env.h"

namespace octet::engine {

NetworkRun::NetworkRun(nn::Context& ctx, const models::Network& network,
                       const models::Conditioning& conditioning, models::Timeline& timeline,
                       bool stays)
    : ctx_(ctx),
      network_(network),
      conditioning_(conditioning),
      timeline_(timeline),
      can_record_(stays && ctx.tap == nullptr && env::graph()) {}

void NetworkRun::velocity(const ConstTensorView& z, int64_t step, const TensorView& out) {
  timeline_.go_to(ctx_, step);
  // A timeline that is not complete makes what no later step does.
  if (!can_record_ || !timeline_.is_complete()) return call(z, out);
  ctx_.begin_layer();
  if (!recording_ || z.data != z_.data || out.data != out_.data) {
    z_ = z;
    out_ = out;
    recording_ = ctx_.backend.record([this] { call(z_, out_); });
  }
  recording_->run();
}

}  // namespace octet::engine
