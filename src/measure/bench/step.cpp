#include "measure/bench/step.h"

#include <memory>

#include "base/error.h"
#include "base/invalid_request.h"
#include "formats/boundary.h"
#include "measure/bench/step_bencher.h"

namespace octet {

std::function<StepBench(const StepBenchRequest&)> step_bencher(const StepBenchRequest& networks,
                                                               const StepProgress& progress) {
  const models::Family& family = models::family_named(networks.family);
  return step_bencher(
      networks, [&](size_t network) { return family.synthetic_network(network, networks.layers); },
      progress);
}

std::function<StepBench(const StepBenchRequest&)> step_bencher(const StepBenchRequest& networks,
                                                               const MakeNetwork& make,
                                                               const StepProgress& progress) {
  check_value(networks.max_memory == 0, "max_memory",
              "`max_memory`: a budget is planned for one size, and these are several");
  const auto bencher = std::make_shared<measure::StepBencher>(networks, make, progress);
  return [bencher](const StepBenchRequest& request) { return bencher->run_again(request); };
}

double StepBench::ms() const {
  double sum = 0;
  for (const StepBranch& branch : branches) sum += branch.ms;
  return sum;
}

StepBench bench_step(const StepBenchRequest& request, const MakeNetwork& make,
                     const StepProgress& progress) {
  return measure::StepBencher(request, make, progress).run();
}

StepBench bench_step(const StepBenchRequest& request, const StepProgress& progress) try {
  const models::Family& family = models::family_named(request.family);
  check(request.layers >= 1, "bench step: {} layers, expected at least 1", request.layers);
  measure::StepBencher bencher(
      request, [&](size_t network) { return family.synthetic_network(network, request.layers); },
      progress);
  bencher.check_budget();
  return bencher.run();
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
