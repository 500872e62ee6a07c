// The noise schedule of Ideogram 4.
//
//   tau(u) = clamp(1 / (1 + exp(mean + std * quantile(u))), t_min, t_max)
//   mean   = mu + ln(width * height / 512^2) / 2
//
// is visited at u = 1, 1 - 1/S, ..., 0 for S steps. The conventions differ in two places:
//   official   u from a linspace in fp32, where fp32 makes the last digits; ends at t_max
//   diffusers  u in fp64; works with sigma = 1 - t rounded to fp32; ends at exactly 1
#pragma once

#include <span>

#include "models/family.h"

namespace octet::ideogram4 {

// What Ideogram publishes. All of them run the same weights.
std::span<const models::Preset> presets();

// The keys of a preset in a file: mu and std, and the last steps with a guidance of their own,
// which polish the picture.
models::PresetKeys preset_keys();

// Throws Error for numbers that make no schedule, InvalidRequest for those of a user.
models::Schedule make_schedule(const models::ScheduleRequest& request);

}  // namespace octet::ideogram4
