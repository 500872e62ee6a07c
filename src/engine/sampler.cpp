#include "engine/sampler.h"

#include <cmath>
#include <cstddef>
#include <utility>

#include "base/error.h"
#include "base/stopwatch.h"

namespace octet::engine {

Velocities one_by_one(Velocity velocity) {
  return [velocity = std::move(velocity)](const ConstTensorView& z, int step,
                                          std::span<const BranchOut> branches) {
    for (const BranchOut& each : branches) velocity(z, step, each.branch, each.out);
  };
}

Sampler::Sampler(nn::Context& ctx, const models::Schedule& schedule,
                 std::span<const models::Branch> branches, int64_t rows, int64_t channels)
    : ctx_(ctx),
      schedule_(schedule),
      branches_(branches),
      z_(ctx.backend, DType::f32, rows, channels),
      v_(ctx.backend, DType::f32, rows, channels),
      input_(ctx.matrix(ctx.dtype == DType::f32 ? 0 : rows, channels)),
      overflow_(ctx.backend, DType::i32, 1, 1) {
  const auto steps = static_cast<size_t>(schedule.steps());
  check(schedule.times.size() == steps + 1 && schedule.guidance.size() == steps,
        "sampler: {} times and {} guidance values for {} steps", schedule.times.size(),
        schedule.guidance.size(), steps);
  for (const size_t branch : models::running_branches(branches, schedule)) {
    velocities_.emplace(branch, ctx.matrix(rows, channels));
  }
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

std::vector<float> Sampler::run(std::span<const float> noise, const Velocities& velocities,
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
    step(index, velocities);
    report(index + 1, stopwatch.microseconds() * 1e-6);
  }
  std::vector<float> latent(noise.size());
  download_matrix(ctx_, z_, latent.data());
  return latent;
}

std::vector<BranchOut> Sampler::branches_of(int index) const {
  const float guidance = schedule_.guidance[static_cast<size_t>(index)];
  std::vector<BranchOut> running;
  for (const auto& [branch, out] : velocities_) {
    if (branches_[branch].weight_at(guidance) != 0) running.push_back({branch, out});
  }
  check(!running.empty(), "sampler: no branch runs at step {} of {} with a guidance of {}",
        index + 1, schedule_.steps(), guidance);
  return running;
}

void Sampler::step(int index, const Velocities& velocities) {
  const auto at = static_cast<size_t>(index);
  const bool rounds = input_.row_count() > 0;
  const std::vector<BranchOut> running = branches_of(index);
  velocities(rounds ? input_.view() : z_.view(), index, running);
  const TensorView overflow(overflow_.view().data, DType::i32, {1});
  EulerStep euler{.branches = {},
                  .count = running.size(),
                  .delta = schedule_.deltas[at],
                  .z = z_,
                  .velocity = v_,
                  .rounded = rounds ? input_.view() : TensorView(),
                  .overflow = overflow};
  for (size_t i = 0; i < running.size(); ++i) {
    euler.branches[i] = {running[i].out,
                         branches_[running[i].branch].weight_at(schedule_.guidance[at])};
  }
  ctx_.backend.euler_step(euler);
  int32_t told = 0;
  ctx_.backend.copy_to_host(reinterpret_cast<std::byte*>(&told), overflow.data, sizeof(told));
  if (told != 0) explain_overflow(index);
}

// Broken weights show here first.
void Sampler::explain_overflow(int index) {
  const auto at = static_cast<size_t>(index);
  std::vector<float> v(static_cast<size_t>(z_.view().shape.elements()));
  for (const BranchOut& each : branches_of(index)) {
    download_matrix(ctx_, each.out, v.data());
    for (size_t i = 0; i < v.size(); ++i) {
      check(std::isfinite(v[i]),
            "sampler: the {} branch returned {} at step {} of {} (t = {}, value {} of {}); the "
            "weights of its network are broken or overflow",
            branches_[each.branch].name, v[i], index + 1, schedule_.steps(), schedule_.times[at], i,
            v.size());
    }
  }
  fail("sampler: the latent overflows at step {} of {} with a guidance of {}", index + 1,
       schedule_.steps(), schedule_.guidance[at]);
}

}  // namespace octet::engine
