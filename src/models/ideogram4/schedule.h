// The noise schedule: at which model times the networks run, how far each step goes, and how
// strongly it is guided. Model time is 0 for noise and 1 for the picture.
//
//   tau(u) = clamp(1 / (1 + exp(mean + std * quantile(u))), t_min, t_max)
//   mean   = mu + ln(width * height / 512^2) / 2
//
// is visited at u = 1, 1 - 1/S, ..., 0 for S steps. The conventions differ in two places:
//   official   u from a linspace in fp32, where fp32 makes the last digits; ends at t_max
//   diffusers  u in fp64; works with sigma = 1 - t rounded to fp32; ends at exactly 1
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "models/ideogram4/convention.h"

namespace octet::ideogram4 {

// What Ideogram publishes. All of them run the same weights.
struct Preset {
  std::string_view name;           // quality, default, turbo
  std::string_view official_name;  // V4_QUALITY_48, ...
  int steps = 0;
  float guidance = 0;  // of the first steps
  float polish_guidance = 0;
  int polish_steps = 0;  // the last ones, which run with polish_guidance
  double mu = 0;
  double std = 1;
};

std::span<const Preset> presets();

// By either name; throws InvalidRequest listing the names.
const Preset& preset_named(std::string_view name);

inline constexpr int kMostSteps = 1000;

struct ScheduleRequest {
  Preset preset = presets()[0];
  int width = 0;  // pixels
  int height = 0;
  // 0: the preset's. Another number keeps the preset's share of polishing steps, rounded to the
  // nearest number but at least one, unless there is one step alone.
  int steps = 0;
  // Empty: the preset's; one value: that for every step; otherwise one value per step.
  std::vector<float> guidance;
  Convention convention = Convention::official;
};

struct Schedule {
  std::vector<float> times;     // [steps + 1] rising; the networks see all but the last
  std::vector<float> deltas;    // [steps] z += delta * velocity
  std::vector<float> guidance;  // [steps]

  int steps() const { return static_cast<int>(deltas.size()); }
};

// Whether any step may ask for the unconditional velocity: one of a guidance other than exactly 1.
bool is_guided(const ScheduleRequest& request);

// Throws Error for numbers that make no schedule, InvalidRequest for those of a user.
Schedule make_schedule(const ScheduleRequest& request);

}  // namespace octet::ideogram4
