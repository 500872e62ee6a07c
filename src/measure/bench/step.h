// octet::bench_step with networks of any size, for tests, and with several sizes of pictures.
#pragma once

#include <functional>
#include <memory>

#include "models/family.h"
#include "octet/tools/bench_step.h"

namespace octet {

using MakeNetwork = std::function<std::unique_ptr<models::Network>(size_t network)>;

StepBench bench_step(const StepBenchRequest& request, const MakeNetwork& make,
                     const StepProgress& progress);

// Measures steps of networks whose weights are made once, for the first step; where they
// cannot be, no step is tried again. One that fails does no harm to the next. Of each request it
// takes the size, the tokens, the attention and the number of steps; device, layers,
// linears and types are those of `networks`.
std::function<StepBench(const StepBenchRequest&)> step_bencher(const StepBenchRequest& networks,
                                                               const StepProgress& progress);
std::function<StepBench(const StepBenchRequest&)> step_bencher(const StepBenchRequest& networks,
                                                               const MakeNetwork& make,
                                                               const StepProgress& progress);

}  // namespace octet
