// When the networks of a model run, how far each step goes, and how strongly it is guided. Model
// time is 0 for noise and 1 for the picture.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octet/model_options.h"
#include "octet/picture.h"

namespace octet::models {

// Steps in a row that are guided alike.
struct GuidancePhase {
  int steps = 0;
  float guidance = 1;
  bool operator==(const GuidancePhase&) const = default;
};

struct Preset {
  std::string name;           // quality, default, turbo
  std::string official_name;  // V4_QUALITY_48, ...; may be empty
  int steps = 0;
  std::vector<GuidancePhase> phases;  // which have all steps together; none: guidance is 1
  // Of the family's schedule, by its own names: "mu", "std".
  std::map<std::string, double, std::less<>> parameters;
};

inline constexpr int kMostSteps = 1000;

// Far beyond what any model was trained with. Below 0 it would lead away from the caption, which is
// what 0 already ignores.
inline constexpr float kMostGuidance = 100;

struct ScheduleRequest {
  Preset preset;
  PictureSize size;
  // 0: the preset's. With another number each phase of guidance but the first keeps its share,
  // rounded to the nearest number but at least one; the first gets the rest, at least one, too,
  // if that leaves others none.
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

// The guidance of each step, as the request says. Throws InvalidRequest, and Error for a preset
// whose phases do not make its steps.
std::vector<float> guidance_of(const ScheduleRequest& request, int steps);

// Of `presets`, by either name; empty: the first. Throws InvalidRequest listing the names.
const Preset& preset_named(std::span<const Preset> presets, std::string_view name);

}  // namespace octet::models
