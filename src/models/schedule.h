// When the networks of a model run, how far each step goes, and how strongly it is guided. Model
// time is 0 for noise and 1 for the picture.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octet/model_options.h"
#include "octet/picture.h"

namespace octet::models {

struct Preset {
  std::string name;           // quality, default, turbo
  std::string official_name;  // V4_QUALITY_48, ...; may be empty
  int steps = 0;
  float guidance = 1;  // of the first steps
  float polish_guidance = 1;
  int polish_steps = 0;  // the last ones, which run with polish_guidance
  double mu = 0;
  double std = 1;
};

inline constexpr int kMostSteps = 1000;

struct ScheduleRequest {
  Preset preset;
  PictureSize size;
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

// Whether any step takes a second velocity: one of a guidance other than exactly 1.
bool is_guided(const ScheduleRequest& request);

// The guidance of each step, as the request says. Throws InvalidRequest.
std::vector<float> guidance_of(const ScheduleRequest& request, int steps);

// Of `presets`, by either name; empty: the first. Throws InvalidRequest listing the names.
const Preset& preset_named(std::span<const Preset> presets, std::string_view name);

}  // namespace octet::models
