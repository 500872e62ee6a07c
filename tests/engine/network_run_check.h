// A recorded network against the same one op by op, on any backend.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "engine/network_run.h"
#include "models/ideogram4/transformer.h"
#include "models/small_dit.h"
#include "weights/random_weights.h"

namespace octet::test {

// A small transformer with random weights in INT8, and what it works on.
struct RecordedNetwork {
  static constexpr int64_t kTokens = 6, kChannels = 16;

  RecordedNetwork(Backend& backend, DType dtype, int64_t text_tokens = 4)
      : ctx{backend, dtype},
        network(small_dit(3, 96), /*conditional=*/text_tokens > 0),
        z(ctx.matrix(kTokens, kChannels)),
        out(ctx.matrix(kTokens, kChannels)) {
    weights::RandomWeights make(backend, {.seed = 5, .dtype = dtype});
    network.visit_all(make);
    std::vector<float> features(static_cast<size_t>(text_tokens * 40));
    weights::fill_random(1, {"features", {}, 0}, {0, 1}, 0, features);
    prompt = network.prepare(ctx, features, {2, 3});
    timeline = network.make_timeline(ctx, times);
  }

  engine::NetworkRun run(bool stays = true) { return {ctx, network, *timeline, stays}; }
  void velocity(engine::NetworkRun& run, int64_t step) { run.velocity(z, step, *prompt, out); }
  // Another latent for each step.
  void set_latent(int64_t step) {
    std::vector<float> latent(kTokens * kChannels);
    weights::fill_random(static_cast<uint64_t>(step), {"latent", {}, 0}, {0, 1}, 0, latent);
    const nn::Matrix uploaded = nn::upload_matrix(ctx, latent.data(), kTokens, kChannels);
    ctx.backend.copy(z.view().data, uploaded.view().data, bytes_of(ctx.dtype, z.view().shape));
  }
  std::vector<float> result() {
    std::vector<float> values(kTokens * kChannels);
    download_matrix(ctx, out, values.data());
    return values;
  }

  const std::vector<float> times = {0.0f, 0.1f, 0.25f, 0.5f, 0.75f, 0.9f};
  nn::Context ctx;
  ideogram4::Transformer network;
  nn::Matrix z, out;
  std::unique_ptr<models::Conditioning> prompt;
  std::unique_ptr<models::Timeline> timeline;
};

// `launched`: later runs are not called op by op.
inline void expect_recorded_velocities_right(Backend& backend, bool launched) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const int64_t text_tokens : {4, 0}) {
      SCOPED_TRACE(std::string(name_of(dtype)) + ", " + std::to_string(text_tokens) + " tokens");
      RecordedNetwork net(backend, dtype, text_tokens);
      engine::NetworkRun plain = net.run(/*stays=*/false), recorded = net.run();
      std::vector<std::vector<float>> expected;
      for (int64_t step = 0; step < net.timeline->steps(); ++step) {
        net.set_latent(step);
        net.velocity(plain, step);
        expected.push_back(net.result());
      }
      EXPECT_NE(expected[1], expected[2]);
      // Twice, as two pictures do.
      for (int64_t i = 0; i < 2 * net.timeline->steps(); ++i) {
        const int64_t step = i % net.timeline->steps();
        net.set_latent(step);
        const size_t before = backend.memory().allocations;
        net.velocity(recorded, step);
        EXPECT_TRUE(i < 2 || backend.memory().allocations == before) << "run " << i;
        EXPECT_EQ(net.result(), expected[static_cast<size_t>(step)]) << "run " << i;
      }
      EXPECT_EQ(recorded.launches() > 0, launched);
      EXPECT_EQ(plain.launches(), 0);
    }
  }
}

}  // namespace octet::test
