// What the tuner measures on the GPU: single runs and runs without pause, of kernels and
// references.
#include "cuda/gemm/trial.h"

#include "cuda/cuda_support.h"
#include "formats/error_message.h"

namespace octet::test {
namespace {

class GemmTrial : public OnGpu {};

TEST_F(GemmTrial, MeasuresEachKernelAloneAndUnderLoad) {
  const auto device = std::make_shared<cuda::Device>(0, nullptr, 0);
  cuda::GemmLauncher launcher(*device);
  for (const Fusion fusion : {Fusion::none, Fusion::swiglu}) {
    GemmProblem problem;
    problem.m = 300, problem.n = 1024, problem.k = 768, problem.fusion = fusion;
    const tune::Trial trial = cuda::begin_trial(device, launcher, nullptr, problem);
    ASSERT_EQ(trial.references, std::vector<std::string>{kQuantize});
    EXPECT_GT(trial.measure(kQuantize, 0), 0);
    EXPECT_GT(trial.under_load(kQuantize, 3), 0);
    int measured = 0;
    for (const cuda::GemmCandidate& candidate : cuda::gemm_candidates()) {
      if (!launcher.refusal(candidate, problem).empty()) continue;
      EXPECT_GT(trial.measure(candidate.name, measured), 0) << candidate.name;
      EXPECT_GT(trial.under_load(candidate.name, 20), 0) << candidate.name;
      ++measured;
    }
    EXPECT_GT(measured, 0);
    EXPECT_ERROR_WITH(trial.under_load("no kernel", 1), "'no kernel' is not a kernel");
  }
}

}  // namespace
}  // namespace octet::test
