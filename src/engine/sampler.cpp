#include "engine/sampler.h"

#include <cmath>
#include <cstddef>

#include "base/error.h"
#include "base/stopwatch.h"

namespace octet::engine {
namespace {

const char* name_of(size_t network) { return network == 0 ? "first" : "second"; }

}  // namespace

Sampler::Sampler(nn::Context& ctx, const models::Schedule& schedule, int64_t rows, int64_t channels)
    : ctx_(ctx),
      schedule_(schedule),
      z_(ctx.backend, DType::f32, rows, channels),
      v_(ctx.backend, DType::f32, rows, channels),
      input_(ctx.matrix(ctx.dtype == DType::f32 ? 0 : rows, channels)),
      velocities_{ctx.matrix(rows, channels), ctx.matrix(rows, channels)},
      overflow_(ctx.backend, DType::i32, 1, 1) {
  const auto steps = static_cast<size_t>(schedule.steps());
  check(schedule.times.size() == steps + 1 && schedule.guidance.size() == steps,
        "sampler: {} times and {} guidance values for {} steps", schedule.times.size(),
        schedule.guidance.size(), steps);
}

void Sampler::upload(std::span<const float> noise) {
  const Shape& shape = z_.view().shape;
  check(std::ssize(noise) == shape.elements(), "sampler: the noise has {} values, expected {}",
        noise.size(), shape.to_string());
  const int32_t none = 0;
  ctx_.backend.copy_to_device(z_.view().data, std::as_bytes(noise).data(), noise.size_bytes());
  ctx_.backend.copy_to_device(overflow_.view().data, reinterpret_cast<const std::byte*>(&none),
                              sizeof(none));
  if (input_.row_count() > 0) ctx_.backend.convert(z_, input_);
}

std::vector<float> Sampler::run(std::span<const float> noise, const Velocity& velocity,
                                const OnStep& on_step) {
  const int steps = schedule_.steps();
  const auto report = [&](int done, double seconds) {
    const ConstTensorView v = done == 0 ? ConstTensorView() : ConstTensorView(v_);
    if (on_step && !on_step({done, steps, seconds, v, z_})) {
      throw Cancelled(fmt::format("cancelled after {} of {} steps", done, steps));
    }
  };
  upload(noise);
  report(0, 0);
  for (int index = 0; index < steps; ++index) {
    const Stopwatch stopwatch;
    step(index, velocity);
    report(index + 1, stopwatch.microseconds() * 1e-6);
  }
  std::vector<float> latent(noise.size());
  download_matrix(ctx_, z_, latent.data());
  return latent;
}

void Sampler::step(int index, const Velocity& velocity) {
  const auto at = static_cast<size_t>(index);
  const float guidance = schedule_.guidance[at];
  const bool rounds = input_.row_count() > 0, guided = guidance != 1.0f;
  const ConstTensorView z = rounds ? input_.view() : z_.view();
  velocity(z, index, 0, velocities_[0]);
  if (guided) velocity(z, index, 1, velocities_[1]);
  const TensorView overflow(overflow_.view().data, DType::i32, {1});
  ctx_.backend.euler_step({.first = velocities_[0],
                           .second = guided ? ConstTensorView(velocities_[1]) : ConstTensorView(),
                           .guidance = guidance,
                           .delta = schedule_.deltas[at],
                           .z = z_,
                           .velocity = v_,
                           .rounded = rounds ? input_.view() : TensorView(),
                           .overflow = overflow});
  int32_t told = 0;
  ctx_.backend.copy_to_host(reinterpret_cast<std::byte*>(&told), overflow.data, sizeof(told));
  if (told != 0) explain_overflow(index);
}

// A checkpoint with broken weights shows here first.
void Sampler::explain_overflow(int index) {
  const auto at = static_cast<size_t>(index);
  const float guidance = schedule_.guidance[at];
  std::vector<float> v(static_cast<size_t>(z_.view().shape.elements()));
  for (const size_t network : {size_t{0}, size_t{1}}) {
    if (network == 1 && guidance == 1.0f) break;
    download_matrix(ctx_, velocities_[network], v.data());
    for (size_t i = 0; i < v.size(); ++i) {
      check(std::isfinite(v[i]),
            "sampler: the {} network returned {} at step {} of {} (t = {}, value {} of {}); its "
            "weights are broken or overflow",
            name_of(network), v[i], index + 1, schedule_.steps(), schedule_.times[at], i, v.size());
    }
  }
  fail("sampler: the latent overflows at step {} of {} with a guidance of {}", index + 1,
       schedule_.steps(), guidance);
}

}  // namespace octet::engine
