// Networks that run step by step: recorded where that is possible.
#include "engine/network_run.h"

#include <atomic>
#include <cstdlib>

#include "cpu/cpu_backend.h"
#include "engine/network_run_check.h"
#include "octet/error.h"
#include "ref/ref_backend.h"

namespace octet::test {
namespace {

TEST(NetworkRun, GivesTheBitsOfPlainCallsAndAllocatesOnce) {
  expect_recorded_velocities_right(*make_ref_backend(), /*launched=*/false);
  expect_recorded_velocities_right(*make_cpu_backend({.threads = 2}), /*launched=*/false);
}

// Allocations of the last of several velocities.
size_t allocations_of_last(RecordedNetwork& net, engine::NetworkRun& run) {
  size_t before = 0;
  for (const int64_t step : {0, 1, 2, 3}) {
    before = net.ctx.backend.memory().allocations;
    net.velocity(run, step);
  }
  return net.ctx.backend.memory().allocations - before;
}

TEST(NetworkRun, RecordsNothingWhereWeightsComeOrSomebodyWatchesOrItIsSwitchedOff) {
  const auto backend = make_ref_backend();
  RecordedNetwork net(*backend, DType::f32);
  net.set_latent(0);
  engine::NetworkRun recorded = net.run();
  EXPECT_EQ(allocations_of_last(net, recorded), 0u);
  engine::NetworkRun streamed = net.run(/*stays=*/false);
  EXPECT_GT(allocations_of_last(net, streamed), 0u);
  ::setenv("OCTET_GRAPH", "0", 1);
  engine::NetworkRun switched_off = net.run();
  ::unsetenv("OCTET_GRAPH");
  EXPECT_GT(allocations_of_last(net, switched_off), 0u);
}

TEST(NetworkRun, RecordsAnewForOtherViews) {
  const auto backend = make_ref_backend();
  RecordedNetwork net(*backend, DType::f32);
  net.set_latent(1);
  engine::NetworkRun run = net.run();
  allocations_of_last(net, run);
  const auto expected = net.result();
  const nn::Matrix elsewhere = net.ctx.matrix(net.kTokens, net.kChannels);
  run.velocity(net.z, 3, *net.prompt, elsewhere);
  std::vector<float> got(expected.size());
  download_matrix(net.ctx, elsewhere, got.data());
  EXPECT_EQ(got, expected);
}

TEST(NetworkRun, StopsOnRequest) {
  const auto backend = make_ref_backend();
  RecordedNetwork net(*backend, DType::f32);
  net.set_latent(2);
  std::atomic<bool> stop{false};
  net.ctx.stop = &stop;
  engine::NetworkRun run = net.run();
  for (const int64_t step : {0, 1, 2}) net.velocity(run, step);
  const auto before = net.result();
  stop = true;
  EXPECT_THROW(net.velocity(run, 3), Cancelled);
  stop = false;
  net.velocity(run, 2);
  EXPECT_EQ(net.result(), before);
}

}  // namespace
}  // namespace octet::test
