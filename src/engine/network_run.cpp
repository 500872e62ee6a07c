#include "engine/network_run.h"

#include <algorithm>

#include "base/env.h"

namespace octet::engine {

NetworkRun::NetworkRun(nn::Context& ctx, const models::Network& network, models::Timeline& timeline,
                       bool stays)
    : ctx_(ctx),
      network_(network),
      timeline_(timeline),
      can_record_(stays && ctx.tap == nullptr && env::graph()) {}

void NetworkRun::velocities(const ConstTensorView& z, int64_t step,
                            std::span<const Evaluation> evaluations) {
  timeline_.go_to(ctx_, step);
  if (!is_recorded(z, evaluations)) {
    recording_.reset();
    z_ = z;
    evaluations_.assign(evaluations.begin(), evaluations.end());
  }
  if (!can_record_) return call();
  ctx_.begin_layer();
  if (!recording_) recording_ = ctx_.backend.record([this] { call(); });
  recording_->run();
}

bool NetworkRun::is_recorded(const ConstTensorView& z,
                             std::span<const Evaluation> evaluations) const {
  return z.data == z_.data &&
         std::equal(evaluations.begin(), evaluations.end(), evaluations_.begin(),
                    evaluations_.end(), [](const Evaluation& a, const Evaluation& b) {
                      return a.conditioning == b.conditioning && a.out.data == b.out.data;
                    });
}

void NetworkRun::call() {
  if (evaluations_.size() > 1) return network_.velocities(ctx_, evaluations_, timeline_, z_);
  const auto& [conditioning, out] = evaluations_.front();
  network_.velocity(ctx_, *conditioning, timeline_, z_, out);
}

}  // namespace octet::engine
