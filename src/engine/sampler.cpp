#include "engine/sampler.h"

#include <cmath>
#include <cstddef>

#include "base/error.h"
#include "base/stopwatch.h"

namespace octet::engine {
namespace {

const char* name_of(size_t network) { return network == 0 ? "first" : "second"; }

// The velocity, checked: a checkpoint with broken weights shows here first.
std::vector<float> velocity_at(const Velocity& velocity, std::span<const float> z,
                               const models::Schedule& schedule, int step, size_t network) {
  std::vector<float> v = velocity(z, step, network);
  check(v.size() == z.size(), "sampler: the {} velocity has {} values at step {}, expected {}",
        name_of(network), v.size(), step + 1, z.size());
  for (size_t i = 0; i < v.size(); ++i) {
    check(std::isfinite(v[i]),
          "sampler: the {} network returned {} at step {} of {} (t = {}, value {} of {}); its "
          "weights are broken or overflow",
          name_of(network), v[i], step + 1, schedule.steps(),
          schedule.times[static_cast<size_t>(step)], i, v.size());
  }
  return v;
}

}  // namespace

std::vector<float> sample(std::vector<float> z, const models::Schedule& schedule,
                          const Velocity& velocity, const OnStep& on_step) {
  const int steps = schedule.steps();
  const auto count = static_cast<size_t>(steps);
  check(schedule.times.size() == count + 1 && schedule.guidance.size() == count,
        "sampler: {} times and {} guidance values for {} steps", schedule.times.size(),
        schedule.guidance.size(), steps);
  const auto report = [&](int done, double seconds, std::span<const float> v) {
    if (on_step && !on_step({done, steps, seconds, v, z})) {
      throw Cancelled(fmt::format("cancelled after {} of {} steps", done, steps));
    }
  };
  report(0, 0, {});
  for (int step = 0; step < steps; ++step) {
    const Stopwatch stopwatch;
    const float guidance = schedule.guidance[static_cast<size_t>(step)];
    const float delta = schedule.deltas[static_cast<size_t>(step)];
    std::vector<float> v = velocity_at(velocity, z, schedule, step, 0);
    if (guidance != 1.0f) {
      const std::vector<float> second = velocity_at(velocity, z, schedule, step, 1);
      for (size_t i = 0; i < v.size(); ++i) {
        v[i] = guidance * v[i] + (1.0f - guidance) * second[i];
      }
    }
    bool finite = true;
    for (size_t i = 0; i < z.size(); ++i) {
      z[i] = z[i] + delta * v[i];
      finite = finite && std::isfinite(z[i]);
    }
    check(finite, "sampler: the latent overflows at step {} of {} with a guidance of {}", step + 1,
          steps, guidance);
    report(step + 1, stopwatch.microseconds() * 1e-6, v);
  }
  return z;
}

}  // namespace octet::engine
