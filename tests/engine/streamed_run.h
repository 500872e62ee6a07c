// Two networks of which some units come and go while they run, against the same that stay, on any
// backend.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "engine/network_run.h"
#include "engine/weight_stream.h"
#include "models/ideogram4/transformer.h"
#include "models/small_dit.h"
#include "weights/random_weights.h"

namespace octet::test {

struct StreamedNetworks {
  static constexpr int64_t kTokens = 6, kChannels = 16, kTextTokens = 4;
  static constexpr int64_t kLayers = 5;

  // `place`: of a unit of a network.
  using Place = std::function<Residency(size_t network, int64_t unit)>;
  StreamedNetworks(Backend& backend, const Place& place, int buffers)
      : ctx{.backend = backend, .dtype = DType::bf16, .stop = &stop},
        stream(backend, buffers, uint64_t{1} << 20),
        z(ctx.matrix(kTokens, kChannels)) {
    for (const size_t i : {0u, 1u}) {
      networks.push_back(
          std::make_unique<ideogram4::Transformer>(small_dit(kLayers, 96), /*conditional=*/i == 0));
      std::vector<Residency> places;
      for (int64_t unit = 0; unit < networks[i]->unit_count(); ++unit) {
        places.push_back(place(i, unit));
      }
      stores.push_back(std::make_unique<engine::PartStore>(*networks[i], ctx, places));
      stores[i]->rules().random = 5 + i;
      stores[i]->load();
      std::vector<float> features(i == 0 ? kTextTokens * 40 : 0);
      weights::fill_random(1, {"features", {}, 0}, {0, 1}, 0, features);
      prompts.push_back(networks[i]->prepare(ctx, features, {2, 3}));
      timelines.push_back(networks[i]->make_timeline(ctx, times));
      stores[i]->end_use();
      out.push_back(ctx.matrix(kTokens, kChannels));
    }
  }

  void open() {
    const std::vector<engine::PartStore*> in_order = {stores[0].get(), stores[1].get()};
    stream.open(in_order);
    for (const size_t i : {0u, 1u}) {
      runs.push_back(std::make_unique<engine::NetworkRun>(ctx, *networks[i], *timelines[i],
                                                          /*stays=*/true));
    }
  }
  void close() {
    runs.clear();
    stream.close();
  }

  // The velocities of those networks that a step runs, one after the other.
  std::vector<float> step(int64_t at, const std::vector<size_t>& running = {0, 1}) {
    std::vector<float> latent(kTokens * kChannels), all;
    weights::fill_random(static_cast<uint64_t>(at), {"latent", {}, 0}, {0, 1}, 0, latent);
    const nn::Matrix uploaded = nn::upload_matrix(ctx, latent.data(), kTokens, kChannels);
    ctx.backend.copy(z.view().data, uploaded.view().data, bytes_of(ctx.dtype, z.view().shape));
    for (const size_t i : running) {
      stream.expect(stores[(i + 1) % 2].get());
      runs[i]->velocity(z, at, *prompts[i], out[i]);
    }
    for (const size_t i : running) {
      std::vector<float> values(kTokens * kChannels);
      download_matrix(ctx, out[i], values.data());
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  const std::vector<float> times = {0.0f, 0.1f, 0.25f, 0.5f, 0.75f, 0.9f};
  std::atomic<bool> stop{false};
  nn::Context ctx;
  std::vector<std::unique_ptr<ideogram4::Transformer>> networks;
  std::vector<std::unique_ptr<engine::PartStore>> stores;
  std::vector<std::unique_ptr<models::Conditioning>> prompts;
  std::vector<std::unique_ptr<models::Timeline>> timelines;
  engine::WeightStream stream;  // ends before the stores
  std::vector<std::unique_ptr<engine::NetworkRun>> runs;
  nn::Matrix z;
  std::vector<nn::Matrix> out;
};

inline Residency stays_on_the_device(size_t, int64_t) { return Residency::device; }

// `launched`: later runs are not called op by op.
inline void expect_streamed_velocities_right(Backend& backend, bool launched) {
  using Place = StreamedNetworks::Place;
  constexpr int64_t kUnits = StreamedNetworks::kLayers + 2;
  const std::vector<std::pair<const char*, Place>> cases = {
      {"all", [](size_t, int64_t) { return Residency::host; }},
      {"every other block",
       [](size_t, int64_t unit) {
         return unit < kUnits && unit % 2 == 0 ? Residency::device : Residency::host;
       }},
      {"one network",
       [](size_t network, int64_t) { return network == 0 ? Residency::host : Residency::device; }},
      {"one block",
       [](size_t network, int64_t unit) {
         return network == 1 && unit == 2 ? Residency::host : Residency::device;
       }},
  };
  StreamedNetworks resident(backend, stays_on_the_device, 3);
  resident.open();
  std::vector<std::vector<float>> expected, of_second;
  for (int64_t at = 0; at < std::ssize(resident.times); ++at) {
    expected.push_back(resident.step(at));
    of_second.push_back(resident.step(at, {1}));
  }
  for (const auto& [name, place] : cases) {
    for (const int buffers : {1, 2, 3, 4}) {
      SCOPED_TRACE(std::string(name) + ", " + std::to_string(buffers) + " buffers");
      StreamedNetworks streamed(backend, place, buffers);
      streamed.open();
      for (int64_t at = 0; at < std::ssize(expected); ++at) {
        const size_t before = backend.memory().allocations;
        EXPECT_EQ(streamed.step(at), expected[static_cast<size_t>(at)]) << "step " << at;
        // The latent alone.
        EXPECT_TRUE(at < 2 || backend.memory().allocations <= before + 1) << "step " << at;
      }
      // Not what was expected: a step without guidance.
      EXPECT_EQ(streamed.step(3, {1}), of_second[3]);
      EXPECT_EQ(streamed.step(4), expected[4]);
      EXPECT_EQ(streamed.runs[1]->launches() > 0, launched);
      // Another picture.
      streamed.close();
      streamed.open();
      for (const int64_t at : {5, 2, 1}) {
        EXPECT_EQ(streamed.step(at), expected[static_cast<size_t>(at)]) << "again, step " << at;
      }
    }
  }
}

}  // namespace octet::test
