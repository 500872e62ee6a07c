#include "models/schedule.h"

#include <algorithm>
#include <cmath>

#include "base/invalid_request.h"
#include "formats/text.h"

namespace octet::models {

namespace {

std::vector<float> guidance_of_phases(const Preset& preset, int steps) {
  if (preset.phases.empty()) return std::vector<float>(static_cast<size_t>(steps), 1.0f);
  int in_all = 0;
  for (const GuidancePhase& phase : preset.phases) {
    in_all = phase.steps < 0 ? -1 : in_all + phase.steps;
    if (in_all < 0) break;
  }
  check(preset.steps >= 1 && in_all == preset.steps,
        "schedule: a preset of {} steps has phases of guidance that do not add up to them",
        preset.steps);
  std::vector<float> pattern(static_cast<size_t>(steps), preset.phases.front().guidance);
  auto end = pattern.rbegin();
  for (size_t i = preset.phases.size() - 1; i > 0; --i) {
    const GuidancePhase& phase = preset.phases[i];
    const auto left = static_cast<int>(pattern.rend() - end);
    int count =
        static_cast<int>(std::lround(static_cast<double>(steps) * phase.steps / preset.steps));
    if (phase.steps > 0) count = std::max(count, 1);
    end = std::fill_n(end, std::min(count, left - 1), phase.guidance);
  }
  return pattern;
}

}  // namespace

std::vector<float> guidance_of(const ScheduleRequest& request, int steps) {
  const auto count = static_cast<size_t>(steps);
  const auto given = request.guidance.size();
  if (given == 0) return guidance_of_phases(request.preset, steps);
  for (const float value : request.guidance) {
    check_value(value >= 0 && value <= kMostGuidance, "guidance",  // no NaN either
                "`guidance`: {} was given, expected 0 to {}", value, kMostGuidance);
  }
  if (given == 1) return std::vector<float>(count, request.guidance[0]);
  check_value(given == count, "guidance",
              "`guidance`: {} values for {} steps; give one, or one per step", given, steps);
  return request.guidance;
}

const Preset& preset_named(std::span<const Preset> presets, std::string_view name) {
  if (name.empty()) return presets.front();
  for (const Preset& preset : presets) {
    if (name == preset.name || name == preset.official_name) return preset;
  }
  std::string known;
  for (const Preset& preset : presets) {
    if (!known.empty()) known += &preset == &presets.back() ? " or " : ", ";
    known += preset.official_name.empty()
                 ? preset.name
                 : fmt::format("{} ({})", preset.name, preset.official_name);
  }
  throw InvalidRequest("preset",
                       sentence("`preset`: {} is unknown, expected {}", in_quotes(name), known));
}

}  // namespace octet::models
