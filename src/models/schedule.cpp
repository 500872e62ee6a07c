#include "models/schedule.h"

#include <algorithm>
#include <cmath>

#include "base/invalid_request.h"
#include "formats/text.h"

namespace octet::models {

std::vector<float> guidance_of(const ScheduleRequest& request, int steps) {
  const Preset& preset = request.preset;
  const auto count = static_cast<size_t>(steps);
  const auto given = request.guidance.size();
  if (given == 0) {
    std::vector<float> pattern(count, preset.guidance);
    int polish = static_cast<int>(
        std::lround(static_cast<double>(steps) * preset.polish_steps / preset.steps));
    if (preset.polish_steps > 0) polish = std::max(polish, 1);
    polish = std::min(polish, steps - 1);
    std::fill_n(pattern.rbegin(), polish, preset.polish_guidance);
    return pattern;
  }
  for (const float value : request.guidance) {
    check_value(std::isfinite(value), "guidance",
                "schedule: a guidance of {} was given, expected a finite number", value);
  }
  if (given == 1) return std::vector<float>(count, request.guidance[0]);
  check_value(given == count, "guidance",
              "schedule: {} guidance values for {} steps; give one, or one per step", given, steps);
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
  throw InvalidRequest("preset", fmt::format("schedule: the preset {} is unknown, expected {}",
                                             in_quotes(name), known));
}

bool is_guided(const ScheduleRequest& request) {
  const auto guides = [](float guidance) { return guidance != 1; };
  if (request.guidance.empty()) {
    const Preset& preset = request.preset;
    return guides(preset.guidance) || (preset.polish_steps > 0 && guides(preset.polish_guidance));
  }
  return std::any_of(request.guidance.begin(), request.guidance.end(), guides);
}

}  // namespace octet::models
