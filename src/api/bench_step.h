// octet::bench_step for any size of the transformer.
#pragma once

#include "models/ideogram4/config.h"
#include "octet/bench_step.h"

namespace octet {

// StepBenchRequest::layers is not used: `config` has them.
StepBench bench_step(const StepBenchRequest& request, const ideogram4::DitConfig& config,
                     const StepProgress& progress);

}  // namespace octet
