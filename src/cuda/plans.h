// Where a GPU's plans come from.
#pragma once

#include "cuda/device_traits.h"
#include "tune/planner.h"

namespace octet::cuda {

tune::PlanHeader plan_header(const DeviceTraits& traits);

// `refines`: plans are stored between the steps of pictures.
tune::Planner make_planner(const DeviceTraits& traits, tune::TuneMode mode, bool refines);

}  // namespace octet::cuda
