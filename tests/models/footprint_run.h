// What networks take of a device's memory while they denoise, as the device's allocator counts it.
#pragma once

#include <memory>
#include <vector>

#include "models/footprint.h"
#include "weights/random_weights.h"

namespace octet::test {

// Beside weights, which are random; the steps of a picture, as the engine runs them: the first
// calls its ops, those that follow are recorded.
inline uint64_t denoising_peak(Backend& backend, const std::vector<models::Network*>& networks,
                               const models::Extent& extent, const models::RunAs& how) {
  nn::Context ctx{.backend = backend,
                  .dtype = how.dtype,
                  .scores = how.scores,
                  .rows_at_once = how.rows_at_once};
  for (models::Network* network : networks) {
    weights::RandomWeights make(backend, {.dtype = how.dtype, .int8 = how.int8});
    network->visit_all(make);
  }
  const uint64_t before = backend.memory().used;
  backend.reset_peak();
  uint64_t peak = 0;
  {
    const std::vector<float> times(static_cast<size_t>(extent.steps), 0.5f);
    std::vector<std::unique_ptr<models::Conditioning>> prompts;
    std::vector<std::unique_ptr<models::Timeline>> timelines;
    for (const models::Network* network : networks) {
      const int64_t tokens = network->sees_text() ? extent.text_tokens : 0;
      const std::vector<float> features(static_cast<size_t>(tokens * network->text_features()));
      prompts.push_back(network->prepare(ctx, features, extent.grid));
    }
    for (const models::Network* network : networks) {
      timelines.push_back(network->make_timeline(ctx, times));
    }
    const int64_t rows = extent.grid.tokens(), channels = networks.front()->latent_channels();
    const nn::Matrix z(backend, DType::f32, rows, channels), v(backend, DType::f32, rows, channels);
    const std::vector<float> noise(static_cast<size_t>(rows * channels), 0.1f);
    std::vector<nn::Matrix> inputs, velocities;
    inputs.push_back(upload_matrix(ctx, noise.data(), rows, channels));
    if (how.dtype == DType::f32) inputs.clear();
    const ConstTensorView& input = inputs.empty() ? z.view() : inputs.front().view();
    for (size_t i = 0; i < networks.size(); ++i) velocities.push_back(ctx.matrix(rows, channels));
    std::vector<std::unique_ptr<Recording>> recordings;
    for (int64_t step = 0; step < 4; ++step) {
      for (size_t i = 0; i < networks.size(); ++i) {
        const auto pass = [&, i] {
          networks[i]->velocity(ctx, *prompts[i], *timelines[i], input, velocities[i]);
        };
        timelines[i]->go_to(ctx, step % extent.steps);
        if (step == 0) {
          pass();
          recordings.push_back(backend.record(pass));
        } else {
          recordings[i]->run();
        }
      }
    }
    backend.synchronize();
    peak = backend.memory().peak - before;
  }
  for (models::Network* network : networks) network->release_all();
  return peak;
}

}  // namespace octet::test
