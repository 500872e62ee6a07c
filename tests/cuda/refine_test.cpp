// Kernels chosen between the steps of a picture: at once without measuring, later by measuring, and
// within the seconds that are given for it.
#include <filesystem>

#include "backend/gemm_run.h"
#include "backend/gemm_tuning.h"
#include "backend/kernel_watch.h"
#include "base/stopwatch.h"
#include "cuda/cuda_support.h"
#include "cuda/gemm/trial.h"
#include "engine/network_run_check.h"
#include "formats/error_message.h"
#include "formats/temporary_folder.h"

namespace octet::test {
namespace {

class RefinedBackend : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    ::setenv("OCTET_CACHE_DIR", folder_.path().c_str(), 1);
  }
  void TearDown() override { ::unsetenv("OCTET_CACHE_DIR"); }

  static std::unique_ptr<Backend> make(tune::TuneMode mode = tune::TuneMode::missing) {
    return make_cuda_backend({.tune = mode, .refines = true});
  }
  // Steps until there is nothing left to refine, which then takes no time; seconds that they took.
  static double refine_all(Backend& backend, double given_s, int steps) {
    const Stopwatch watch;
    for (int step = 0; step < steps; ++step) backend.refine(given_s);
    return watch.microseconds() * 1e-6;
  }
  bool has_plans() const { return std::filesystem::exists(folder_.file("plans")); }
  static GemmPlan plan_of(int64_t m) {
    GemmProblem problem;
    problem.m = m, problem.n = 512, problem.k = 768;
    return make_cuda_backend({.tune = tune::TuneMode::off})->tuning().plan_gemm(problem);
  }

  TemporaryFolder folder_;
};

TEST_F(RefinedBackend, NothingIsMeasuredBeforeTheFirstUse) {
  const auto backend = make();
  GemmRun({256, 512, 768}, 1).compare(*backend, DType::bf16, Fusion::none);
  EXPECT_FALSE(has_plans());
  refine_all(*backend, 1, 100);
  EXPECT_TRUE(has_plans());
  const GemmPlan plan = plan_of(256);
  EXPECT_EQ(plan.source, GemmPlan::Source::file);
  EXPECT_GT(plan.us, 0);
  EXPECT_FALSE(plan.under_load);

  // The kernel of the plan runs, with the same bits, from now on.
  const KernelWatch watch(*backend);
  GemmRun({256, 512, 768}, 1).compare(*backend, DType::bf16, Fusion::none);
  EXPECT_EQ(watch.kernel(), plan.kernel);
}

TEST_F(RefinedBackend, TakesNoMoreTimeThanItIsGiven) {
  const auto backend = make();
  for (const int64_t m : {256, 1024, 4096}) {
    GemmRun({m, 512, 768}, 1).run(*backend, DType::bf16, Fusion::none);
  }
  double taken = 0, given = 0, longest = 0;
  while (given < 3) {
    const double step = refine_all(*backend, 2e-3, 1);
    taken += step;
    given += 2e-3;
    longest = std::max(longest, step);
    ASSERT_LE(taken, 1.1 * given + longest);
  }
  EXPECT_GT(taken, 0.001);
  EXPECT_TRUE(has_plans());
}

TEST_F(RefinedBackend, TakesNothingWhereMemoryIsShort) {
  const auto backend = make_cuda_backend({.memory_limit = uint64_t{2} << 30, .refines = true});
  GemmRun({256, 512, 768}, 1).run(*backend, DType::bf16, Fusion::none);
  const Buffer rest = backend->allocate(*backend->free_memory() - (100 << 20));
  backend->reset_peak();
  const size_t used = backend->memory().used;
  for (int step = 0; step < 20; ++step) backend->refine(1);
  EXPECT_EQ(backend->memory().peak, used);
  EXPECT_FALSE(has_plans());
}

TEST_F(RefinedBackend, GivesItsMemoryBackAfterEachStep) {
  const auto backend = make();
  GemmRun({1024, 512, 768}, 1).run(*backend, DType::bf16, Fusion::none);
  const size_t used = backend->memory().used;
  backend->refine(2e-3);
  EXPECT_EQ(backend->memory().used, used);
  EXPECT_GT(backend->memory().peak, used);
}

TEST_F(RefinedBackend, DoesNothingWhereNothingIsToBeMeasured) {
  const auto off = make(tune::TuneMode::off);
  GemmRun({256, 512, 768}, 1).run(*off, DType::bf16, Fusion::none);
  refine_all(*off, 1, 10);
  EXPECT_FALSE(has_plans());
  const auto all = make(tune::TuneMode::all);  // measures before the first use, as was asked for
  GemmRun({256, 512, 768}, 1).run(*all, DType::bf16, Fusion::none);
  EXPECT_TRUE(has_plans());
}

// In the middle of a picture, before and after its steps are recorded.
TEST_F(RefinedBackend, RecordedStepsKeepTheirBits) {
  const auto backend = make();
  RecordedNetwork net(*backend, DType::bf16);
  engine::NetworkRun plain = net.run(/*stays=*/false), run = net.run();
  net.set_latent(1);
  net.velocity(plain, 1);
  const auto expected = net.result();
  for (int step = 0; step < 60; ++step) {
    net.velocity(run, 1);
    EXPECT_EQ(net.result(), expected) << step;
    backend->refine(5e-3);
  }
  EXPECT_GT(run.launches(), 0);
  EXPECT_TRUE(has_plans());
  refine_all(*backend, 1, 100);
  engine::NetworkRun next = net.run();
  for (int step = 0; step < 4; ++step) {
    net.velocity(next, 1);
    EXPECT_EQ(net.result(), expected) << step;
  }
  EXPECT_GT(next.launches(), 0);
}

TEST_F(RefinedBackend, AShortTrialMeasuresEachKernel) {
  const auto device = std::make_shared<cuda::Device>(0, nullptr, 0);
  cuda::GemmLauncher launcher(*device);
  const uint64_t generation = device->generation();
  for (const Fusion fusion : {Fusion::none, Fusion::swiglu}) {
    GemmProblem problem;
    problem.m = 300, problem.n = 1024, problem.k = 768, problem.fusion = fusion;
    const tune::Trial trial = cuda::begin_short_trial(device, problem, 128 << 20);
    EXPECT_TRUE(trial.references.empty());
    int measured = 0;
    for (const cuda::GemmCandidate& candidate : cuda::gemm_candidates()) {
      if (!launcher.refusal(candidate, problem).empty()) continue;
      EXPECT_GT(trial.measure(candidate.name, measured), 0) << candidate.name;
      ++measured;
    }
    EXPECT_GT(measured, 0);
    EXPECT_ERROR_WITH(cuda::begin_short_trial(device, problem, 1000), "expected at most 1000");
  }
  EXPECT_EQ(device->generation(), generation);  // what was recorded is still good
}

}  // namespace
}  // namespace octet::test
