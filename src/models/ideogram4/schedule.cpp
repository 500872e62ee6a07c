#include "models/ideogram4/schedule.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/invalid_request.h"
#include "models/ideogram4/normal_quantile.h"

namespace octet::ideogram4 {
namespace {

constexpr double kBasePixels = 512.0 * 512.0;

// The model was trained on signal-to-noise ratios from e^-15 to e^18.
const double kFirstTime = 1 / (1 + std::exp(9.0));
const double kLastTime = 1 / (1 + std::exp(-7.5));

// Element k of torch.linspace(0, 1, steps + 1): counted from the nearer end, and the upper half
// with a fused multiply-add, as torch's CPU and CUDA builds do. It shows in the last digit of a
// time.
template <class T>
T linspace_element(int k, int steps) {
  const T step = T(1) / static_cast<T>(steps);
  if (k < (steps + 1) / 2) return step * static_cast<T>(k);
  return std::fma(-step, static_cast<T>(steps - k), T(1));
}

double time_at(double u, double mean, double std) {
  const double time = 1 / (1 + std::exp(mean + std * normal_quantile(u)));
  return std::clamp(time, kFirstTime, kLastTime);
}

}  // namespace

std::span<const models::Preset> presets() {
  static const models::Preset published[] = {
      {"quality", "V4_QUALITY_48", 48, 7.0f, 3.0f, 3, 0.0, 1.5},
      {"default", "V4_DEFAULT_20", 20, 7.0f, 3.0f, 2, 0.0, 1.75},
      {"turbo", "V4_TURBO_12", 12, 7.0f, 3.0f, 1, 0.5, 1.75},
  };
  return published;
}

models::Schedule make_schedule(const models::ScheduleRequest& request) {
  const models::Preset& preset = request.preset;
  const int steps = request.steps == 0 ? preset.steps : request.steps;
  check_value(steps >= 1 && steps <= models::kMostSteps, "steps",
              "schedule: {} steps, expected 1 to {}", steps, models::kMostSteps);
  check(preset.steps >= 1 && preset.polish_steps >= 0 && preset.polish_steps <= preset.steps,
        "schedule: a preset of {} steps, {} of them polishing", preset.steps, preset.polish_steps);
  check_value(request.size.width > 0 && request.size.height > 0, "size",
              "schedule: the image is {}x{}, expected pixels", request.size.width,
              request.size.height);
  check(std::isfinite(preset.mu) && std::isfinite(preset.std) && preset.std > 0,
        "schedule: mu is {} and std {}, expected finite numbers and std above 0", preset.mu,
        preset.std);

  const double pixels = static_cast<double>(request.size.width) * request.size.height;
  const double mean = preset.mu + 0.5 * std::log(pixels / kBasePixels);
  models::Schedule schedule;
  schedule.guidance = models::guidance_of(request, steps);
  if (request.convention == Convention::official) {
    for (int k = steps; k >= 0; --k) {
      const double u = linspace_element<float>(k, steps);
      schedule.times.push_back(static_cast<float>(time_at(u, mean, preset.std)));
    }
    for (size_t k = 0; k + 1 < schedule.times.size(); ++k) {
      schedule.deltas.push_back(schedule.times[k + 1] - schedule.times[k]);
    }
    return schedule;
  }
  std::vector<float> sigmas;
  for (int k = steps; k >= 1; --k) {
    const double u = linspace_element<double>(k, steps);
    sigmas.push_back(static_cast<float>(1 - time_at(u, mean, preset.std)));
  }
  sigmas.push_back(0);
  for (const float sigma : sigmas) {
    // The scheduler there counts in thousandths, which costs a rounding each way.
    const float thousandths = sigma * 1000.0f;
    schedule.times.push_back(1.0f - thousandths / 1000.0f);
  }
  for (size_t k = 0; k + 1 < sigmas.size(); ++k) {
    schedule.deltas.push_back(sigmas[k] - sigmas[k + 1]);
  }
  return schedule;
}

}  // namespace octet::ideogram4
