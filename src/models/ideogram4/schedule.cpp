#include "models/ideogram4/schedule.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/invalid_request.h"
#include "base/never_destroyed.h"
#include "models/ideogram4/normal_quantile.h"
#include "models/presets.h"

namespace octet::ideogram4 {
namespace {

constexpr std::string_view kRequiredKeys[] = {"mu", "std"};
constexpr std::string_view kOptionalKeys[] = {"polish_guidance", "polish_steps"};

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

models::Preset published(const char* name, const char* official_name, int steps, int polish_steps,
                         double mu, double std) {
  return {name,
          official_name,
          steps,
          {{steps - polish_steps, 7.0f}, {polish_steps, 3.0f}},
          {{"mu", mu}, {"std", std}}};
}

void read_preset(const models::ConfigFields& fields, models::Preset& preset) {
  constexpr double kMostMu = 20, kLeastStd = 1e-3, kMostStd = 20;
  check((fields.find("polish_guidance") == nullptr) == (fields.find("polish_steps") == nullptr),
        "{}: has one of polish_guidance and polish_steps, expected both or neither", fields.path());
  const float polish = models::guidance_in(fields, "polish_guidance");
  const auto steps = static_cast<int>(fields.integer("polish_steps", 0, 0, preset.steps));
  if (steps > 0) {
    preset.phases.front().steps -= steps;
    preset.phases.push_back({steps, polish});
  }
  preset.parameters["mu"] = fields.number("mu", 0, -kMostMu, kMostMu);
  preset.parameters["std"] = fields.number("std", 1, kLeastStd, kMostStd);
}

// A preset made by hand may have none.
double parameter(const models::Preset& preset, std::string_view name, double absent) {
  const auto found = preset.parameters.find(name);
  return found == preset.parameters.end() ? absent : found->second;
}

}  // namespace

std::span<const models::Preset> presets() {
  static const auto& all = never_destroyed<std::vector<models::Preset>>(std::vector{
      published("quality", "V4_QUALITY_48", 48, 3, 0.0, 1.5),
      published("default", "V4_DEFAULT_20", 20, 2, 0.0, 1.75),
      published("turbo", "V4_TURBO_12", 12, 1, 0.5, 1.75),
  });
  return all;
}

models::PresetKeys preset_keys() { return {kRequiredKeys, kOptionalKeys, read_preset}; }

models::Schedule make_schedule(const models::ScheduleRequest& request) {
  const models::Preset& preset = request.preset;
  const int steps = request.steps == 0 ? preset.steps : request.steps;
  check_value(steps >= 1 && steps <= models::kMostSteps, "steps",
              "schedule: {} steps, expected 1 to {}", steps, models::kMostSteps);
  check_value(request.size.width > 0 && request.size.height > 0, "size",
              "schedule: the image is {}x{}, expected pixels", request.size.width,
              request.size.height);
  const double mu = parameter(preset, "mu", 0), std = parameter(preset, "std", 1);
  check(std::isfinite(mu) && std::isfinite(std) && std > 0,
        "schedule: mu is {} and std {}, expected finite numbers and std above 0", mu, std);

  const double pixels = static_cast<double>(request.size.width) * request.size.height;
  const double mean = mu + 0.5 * std::log(pixels / kBasePixels);
  models::Schedule schedule;
  schedule.guidance = models::guidance_of(request, steps);
  if (request.convention == Convention::official) {
    for (int k = steps; k >= 0; --k) {
      const double u = linspace_element<float>(k, steps);
      schedule.times.push_back(static_cast<float>(time_at(u, mean, std)));
    }
    for (size_t k = 0; k + 1 < schedule.times.size(); ++k) {
      schedule.deltas.push_back(schedule.times[k + 1] - schedule.times[k]);
    }
    return schedule;
  }
  std::vector<float> sigmas;
  for (int k = steps; k >= 1; --k) {
    const double u = linspace_element<double>(k, steps);
    sigmas.push_back(static_cast<float>(1 - time_at(u, mean, std)));
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
