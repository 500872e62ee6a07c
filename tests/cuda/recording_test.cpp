// Steps that are recorded as CUDA graphs.
#include <atomic>
#include <cstdlib>

#include "cuda/cuda_support.h"
#include "engine/network_run_check.h"
#include "engine/sampler.h"
#include "engine/streamed_run.h"
#include "octet/error.h"

namespace octet::test {
namespace {

class RecordingOnGpu : public OnGpu {};

TEST_F(RecordingOnGpu, GivesTheBitsOfPlainCallsAndAllocatesOnce) {
  expect_recorded_velocities_right(*make_gpu(), /*launched=*/true);
}

TEST_F(RecordingOnGpu, GivesTheBitsOfWeightsThatStayWhereTheyCome) {
  expect_streamed_velocities_right(*make_gpu(), /*launched=*/true);
}

// Host memory that is not pinned comes through pinned pieces.
TEST_F(RecordingOnGpu, GivesTheSameWherePinnedMemoryIsRefused) {
  ::setenv("OCTET_PINNED", "0", 1);
  expect_streamed_velocities_right(*make_gpu(), /*launched=*/true);
  ::unsetenv("OCTET_PINNED");
}

// The work block of the first is too small for the second, and stays for the first.
TEST_F(RecordingOnGpu, RecordingsOfTwoNetworksTakeTurns) {
  const auto backend = make_gpu();
  RecordedNetwork small(*backend, DType::bf16, /*text_tokens=*/0);
  RecordedNetwork large(*backend, DType::bf16, /*text_tokens=*/40);
  engine::NetworkRun plain_small = small.run(/*stays=*/false), run_small = small.run();
  engine::NetworkRun plain_large = large.run(/*stays=*/false), run_large = large.run();
  const auto expect_same = [](RecordedNetwork& net, engine::NetworkRun& plain,
                              engine::NetworkRun& run, int64_t step) {
    net.set_latent(step);
    net.velocity(plain, step);
    const auto expected = net.result();
    net.set_latent(step);
    net.velocity(run, step);
    EXPECT_EQ(net.result(), expected) << step;
  };
  for (const int64_t step : {0, 1, 2}) expect_same(small, plain_small, run_small, step);
  for (const int64_t step : {0, 1, 2, 3, 4, 5}) {
    expect_same(large, plain_large, run_large, step);
    expect_same(small, plain_small, run_small, step);
  }
}

// A gemm with shared tiles and more partial sums than before moves their memory: what was recorded
// is recorded anew.
TEST_F(RecordingOnGpu, WorkspacesMayGrowBetweenRuns) {
  const auto backend = make_gpu();
  RecordedNetwork net(*backend, DType::bf16);
  engine::NetworkRun plain = net.run(/*stays=*/false), run = net.run();
  net.set_latent(1);
  net.velocity(plain, 1);
  const auto expected = net.result();
  for (int i = 0; i < 3; ++i) net.velocity(run, 1);
  RecordedNetwork other(*backend, DType::f32, /*text_tokens=*/300);
  engine::NetworkRun grows = other.run(/*stays=*/false);
  other.velocity(grows, 1);
  for (int i = 0; i < 3; ++i) {
    net.velocity(run, 1);
    EXPECT_EQ(net.result(), expected);
  }
}

TEST_F(RecordingOnGpu, AStepWaitsOnce) {
  const auto backend = make_gpu();
  RecordedNetwork net(*backend, DType::bf16);
  models::Schedule schedule;
  schedule.times = {0, 0.1f, 0.25f, 0.5f, 0.75f, 0.9f, 1};
  schedule.deltas.assign(6, 0.1f);
  schedule.guidance.assign(6, 1.0f);
  const models::Branch only[] = {{"only"}};
  engine::Sampler sampler(net.ctx, schedule, only, net.kTokens, net.kChannels);
  engine::NetworkRun run = net.run();
  std::vector<int64_t> waits;
  sampler.run(
      std::vector<float>(net.kTokens * net.kChannels, 0.5f),
      engine::one_by_one([&](const ConstTensorView& z, int step, size_t, const TensorView& out) {
        run.velocity(z, step, *net.prompt, out);
      }),
      [&](const engine::SamplerStep&) {
        waits.push_back(backend->waits());
        return true;
      });
  for (size_t i = 4; i < waits.size(); ++i) EXPECT_EQ(waits[i] - waits[i - 1], 1) << i;
}

// Also in the run that records.
TEST_F(RecordingOnGpu, StopsOnRequestAndGoesOn) {
  const auto backend = make_gpu();
  RecordedNetwork net(*backend, DType::bf16);
  std::atomic<bool> stop{false};
  net.ctx.stop = &stop;
  net.set_latent(0);
  engine::NetworkRun run = net.run();
  for (const int64_t step : {0, 1, 2, 3}) {
    stop = true;
    EXPECT_THROW(net.velocity(run, step), Cancelled);
    stop = false;
    net.velocity(run, step);
  }
  const auto recording = backend->record(
      [&] { net.network.velocity(net.ctx, *net.prompt, *net.timeline, net.z, net.out); });
  recording->run();
  stop = true;
  EXPECT_THROW(recording->run(), Cancelled) << "within the capture";
  stop = false;
  recording->run();
  EXPECT_GT(recording->launches(), 0);
}

// What waits for the device cannot be recorded, and runs nevertheless.
TEST_F(RecordingOnGpu, WorkThatWaitsIsCalledEachTime) {
  const auto backend = make_gpu();
  int calls = 0;
  const auto recording = backend->record([&] {
    backend->synchronize();
    ++calls;
  });
  for (int i = 0; i < 4; ++i) recording->run();
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(recording->launches(), 0);
}

}  // namespace
}  // namespace octet::test
