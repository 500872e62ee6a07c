// octet::bench_step with networks of any size, for tests.
#pragma once

#include <functional>
#include <memory>

#include "models/family.h"
#include "octet/bench_step.h"

namespace octet {

using MakeNetwork = std::function<std::unique_ptr<models::Network>(size_t network)>;

StepBench bench_step(const StepBenchRequest& request, const MakeNetwork& make,
                     const StepProgress& progress);

}  // namespace octet
