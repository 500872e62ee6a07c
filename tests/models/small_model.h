// The small trained model of models/demo while it paints, one forward pass after the other.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "convert/calibrate.h"
#include "engine/noise.h"
#include "engine/part_store.h"
#include "engine/sampler.h"
#include "models/family.h"
#include "models/presets.h"

namespace octet::test {

// Shows attention's arguments, among them what it returned, for as long as it lives.
class AttentionWatch : public OpObserver {
 public:
  using OnAttention = std::function<void(const AttentionArgs&)>;
  AttentionWatch(Backend& backend, OnAttention seen) : backend_(backend), seen_(std::move(seen)) {
    backend_.set_op_observer(this);
  }
  ~AttentionWatch() override { backend_.set_op_observer(nullptr); }
  AttentionWatch(const AttentionWatch&) = delete;
  AttentionWatch& operator=(const AttentionWatch&) = delete;

  void before(std::string_view) override {}
  void after(const OpRecord& record) override {
    if (record.attention != nullptr) seen_(*record.attention);
  }

 private:
  Backend& backend_;
  OnAttention seen_;
};

// Activations are F32, so that what is seen of them is not rounded; linears are as the files say.
class SmallModel {
 public:
  SmallModel(Backend& backend, const std::string& folder)
      : ctx_{.backend = backend, .dtype = DType::f32},
        family_(models::family_of(folder)),
        defaults_(models::defaults_of(family_, {folder})),
        model_(family_.open(family_.find({.model = folder}),
                            {.activations = Activations::f32, .decodes = false})) {
    text_ = loaded(*model_.text_encoder, /*int8=*/false);
    for (const auto& network : model_.networks) {
      networks_.push_back(loaded(*network, /*int8=*/true));
    }
  }

  // One forward pass of a network, as often as one likes; its velocity is forgotten.
  struct Pass {
    std::string_view network;
    int step = 0;
    std::function<void(nn::AttentionScores)> run;
  };

  // From noise to a latent; `seen` is called for each pass before it counts.
  void paint(const std::string& caption_path, int steps,
             const std::function<void(const Pass&)>& seen) {
    const std::string prompt = convert::read_captions(family_, {caption_path}).front();
    const auto features = model_.text_encoder->encode(ctx_, model_.tokenize(prompt), {});
    const models::Schedule schedule = family_.make_schedule(
        {.preset = defaults_.presets.front(), .size = defaults_.size, .steps = steps});
    const int side = model_.sizes.token_side;
    const models::Grid grid{defaults_.size.height / side, defaults_.size.width / side};
    std::vector<std::unique_ptr<models::Conditioning>> prompts;
    for (const models::Branch& branch : family_.branches) {
      const bool sees = branch.sees == models::BranchText::prompt;
      prompts.push_back(model_.networks[branch.network]->prepare(
          ctx_, sees ? features : UnsetVector<float>(), grid));
    }
    const int64_t channels = model_.networks.front()->latent_channels();
    engine::Sampler sampler(ctx_, schedule, family_.branches, grid.tokens(), channels);
    const auto velocity = [&](const ConstTensorView& z, int step, size_t branch,
                              const TensorView& out) {
      const size_t index = family_.branches[branch].network;
      const auto run = [&](nn::AttentionScores scores) {
        nn::Context ctx = ctx_;
        ctx.scores = scores;
        const float time = schedule.times[static_cast<size_t>(step)];
        model_.networks[index]->velocity_at(ctx, *prompts[branch], z, time, out);
      };
      seen({family_.networks[index].name, step, run});
      run(nn::AttentionScores::floating);
    };
    sampler.run(engine::make_noise(1, 0, static_cast<size_t>(grid.tokens() * channels)),
                engine::one_by_one(velocity));
  }

 private:
  std::unique_ptr<engine::PartStore> loaded(models::Part& part, bool int8) {
    auto store = std::make_unique<engine::PartStore>(part, ctx_, Residency::device);
    store->rules().int8 = int8;
    store->load();
    return store;
  }

  nn::Context ctx_;
  const models::Family& family_;
  models::PictureDefaults defaults_;
  models::Model model_;
  std::unique_ptr<engine::PartStore> text_;
  std::vector<std::unique_ptr<engine::PartStore>> networks_;
};

}  // namespace octet::test
