// Families whose steps have other branches than Ideogram's: each is a list of rows, and gives the
// bits of a plain loop over them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "cpu/cpu_backend.h"
#include "engine/noise.h"
#include "engine/part_store.h"
#include "engine/toy_fixture.h"
#include "octet/generate.h"
#include "octet/tools/bench_step.h"

namespace octet::test {
namespace {

class Branches : public ToyFamily {
 protected:
  static ModelOptions options_of(const models::Family& family) {
    models::add_family(family);
    const std::string folder = folder_->file(std::string(family.name));
    if (!std::filesystem::exists(folder)) write_toy_model(folder, 1, family);
    ModelOptions made = options(folder);
    made.activations = Activations::f32;
    return made;
  }

  static PictureRequest guided(std::vector<float> guidance = {}, const std::string& negative = "") {
    PictureRequest made = request();
    made.guidance = std::move(guidance);
    made.negative = negative;
    return made;
  }

  // Latents by the book: every branch, whatever its weight, and sums of the host.
  static std::vector<float> plain_loop(const models::Family& family, const ModelOptions& model,
                                       const PictureRequest& asked) {
    const auto backend = make_cpu_backend({.threads = 1});
    nn::Context ctx{*backend, DType::f32};
    const models::Model parts = family.open(family.find({.model = model.model}), {});
    engine::PartStore text(*parts.text_encoder, ctx, Residency::device);
    text.rules().int8 = false;
    text.load();
    engine::PartStore weights(*parts.networks[0], ctx, Residency::device);
    weights.load();
    const models::Network& network = *parts.networks[0];
    const models::Schedule schedule = family.make_schedule({.preset = family.presets.front(),
                                                            .size = asked.size,
                                                            .steps = asked.steps,
                                                            .guidance = asked.guidance});
    const models::Grid grid{asked.size.height / 4, asked.size.width / 4};
    std::vector<std::unique_ptr<models::Conditioning>> prompts;
    for (const models::Branch& branch : family.branches) {
      const std::string words = branch.sees == models::BranchText::prompt     ? asked.caption
                                : branch.sees == models::BranchText::negative ? asked.negative
                                                                              : "";
      UnsetVector<float> features;
      if (!words.empty()) {
        features = parts.text_encoder->encode(ctx, parts.tokenize(words), {});
      }
      prompts.push_back(network.prepare(ctx, features, grid));
    }
    const int64_t tokens = grid.tokens(), channels = network.latent_channels();
    auto z = engine::make_noise(asked.seed, 0, static_cast<size_t>(tokens * channels));
    for (size_t step = 0; step < schedule.deltas.size(); ++step) {
      const nn::Matrix latent = nn::upload_matrix(ctx, z.data(), tokens, channels);
      const nn::Matrix out = ctx.matrix(tokens, channels);
      std::vector<float> sum(z.size());
      for (size_t b = 0; b < family.branches.size(); ++b) {
        network.velocity_at(ctx, *prompts[b], latent, schedule.times[step], out);
        std::vector<float> v(z.size());
        download_matrix(ctx, out, v.data());
        const float weight = family.branches[b].weight_at(schedule.guidance[step]);
        for (size_t i = 0; i < v.size(); ++i) sum[i] += weight * v[i];
      }
      for (size_t i = 0; i < z.size(); ++i) z[i] += schedule.deltas[step] * sum[i];
    }
    return z;
  }

  static void expect_plain_loop(const models::Family& family, const PictureRequest& asked) {
    const ModelOptions model = options_of(family);
    EXPECT_EQ(render(model, asked).latent, plain_loop(family, model, asked)) << family.name;
  }
};

TEST_F(Branches, GiveTheBitsOfAPlainLoop) {
  expect_plain_loop(toy_family(), guided());
  for (const models::Family* family : {&negative_toy_family(), &three_branch_toy_family()}) {
    for (const std::string negative : {"", "grey sky"}) {
      expect_plain_loop(*family, guided({}, negative));
      expect_plain_loop(*family, guided({7}, negative));
      expect_plain_loop(*family, guided({1}));
      expect_plain_loop(*family, guided({0, 1.5f, 3}, negative));
    }
  }
}

TEST_F(Branches, BatchesHaveTheBitsOfOneByOne) {
  for (const models::Family* family : {&negative_toy_family(), &three_branch_toy_family()}) {
    for (const Activations activations : {Activations::f32, Activations::bf16}) {
      ModelOptions model = options_of(*family);
      model.activations = activations;
      ToyDenoiser::largest_batch = 0;
      const Rendered together = render(model, guided({}, "grey sky"));
      EXPECT_EQ(ToyDenoiser::largest_batch, family->branches.size());
      ToyDenoiser::may_batch = false;
      ToyDenoiser::largest_batch = 0;
      const Rendered apart = render(model, guided({}, "grey sky"));
      ToyDenoiser::may_batch = true;
      EXPECT_EQ(ToyDenoiser::largest_batch, 1u);
      EXPECT_TRUE(same(together, apart)) << family->name;
      model.keep = {{"", Residency::streamed}};
      EXPECT_TRUE(same(together, render(model, guided({}, "grey sky")))) << "weights come and go";
    }
  }
}

TEST_F(Branches, NegativePromptsChangeGuidedPicturesAlone) {
  Engine engine(options_of(negative_toy_family()));
  const Rendered without = render(engine, guided()), with = render(engine, guided({}, "grey sky"));
  EXPECT_FALSE(same(without, with));
  EXPECT_EQ(with.report.negative, "grey sky");
  const auto& metadata = with.pictures.front().metadata;
  EXPECT_NE(std::find(metadata.begin(), metadata.end(),
                      std::pair<std::string, std::string>("negative", "grey sky")),
            metadata.end());
  EXPECT_TRUE(same(render(engine, guided()), without)) << "after another";
  EXPECT_TRUE(same(render(engine, guided({1})), render(engine, guided({1}, "grey sky"))));
}

TEST_F(Branches, AreReported) {
  Engine engine(options_of(three_branch_toy_family()));
  const RenderReport report = render(engine, guided({4, 1.5f, 1.5f}, "grey sky")).report;
  ASSERT_EQ(report.branches.size(), 3u);
  const std::vector<std::pair<std::string, int>> expected = {
      {"positive", 3}, {"negative", 1}, {"silent", 3}};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(report.branches[i].name, expected[i].first);
    EXPECT_EQ(report.branches[i].network, "denoiser");
    EXPECT_EQ(report.branches[i].steps, expected[i].second);
    EXPECT_GT(report.branches[i].seconds, 0);
  }
  RenderReport total = report;
  add_report(total, report);
  EXPECT_EQ(total.branches[0].steps, 6);
  EXPECT_EQ(render(engine, guided({1.5f})).report.branches.size(), 2u);
}

TEST_F(Branches, RefuseWhatTheyCannotTake) {
  Engine plain(options_of(toy_family())), guided_one(options_of(negative_toy_family()));
  EXPECT_EQ(wrong_field([&] { plain.check(guided({}, "grey sky")); }), "negative");
  EXPECT_ERROR_WITH(plain.check(guided({}, "grey sky")), "Toy takes no negative prompt");
  EXPECT_EQ(wrong_field([&] { plain.check(guided({3})); }), "guidance");
  EXPECT_EQ(wrong_field([&] { guided_one.check(guided({3}, std::string(201, 'a'))); }), "negative");
  models::Family wrong = toy_family();
  wrong.name = "wrong";
  wrong.branches = {};
  EXPECT_ERROR_WITH(models::add_family(wrong), "has 0 branches, expected 1 to 4");
  constexpr models::Branch kElsewhere[] = {{"far", 1}};
  wrong.branches = kElsewhere;
  EXPECT_ERROR_WITH(models::add_family(wrong), "is of network 1, and there are 1");
}

TEST_F(Branches, ANegativePromptThatNoStepSeesIsWarnedOf) {
  const Engine engine(options_of(negative_toy_family()));
  const Job unguided_job = engine.check(guided({1}, "grey sky"));
  ASSERT_EQ(unguided_job.warnings().size(), 1u);
  EXPECT_TRUE(contains(unguided_job.warnings()[0], "no step is guided"));
  EXPECT_EQ(unguided_job.branches(), std::vector<std::string>{"positive"});
  const Job job = engine.check(guided({}, "grey sky"));
  EXPECT_TRUE(job.warnings().empty());
  EXPECT_EQ(job.branches(), (std::vector<std::string>{"positive", "negative"}));
}

TEST_F(Branches, ACaptionThatNoStepSeesIsWarnedOf) {
  const Engine engine(options_of(negative_toy_family()));
  const Job blind = engine.check(guided({0}));
  ASSERT_EQ(blind.warnings().size(), 1u);
  EXPECT_TRUE(contains(blind.warnings()[0], "so the caption changes nothing"));
  EXPECT_TRUE(engine.check(guided({0.5f})).warnings().empty());
  for (const float nonsense : {-1.0f, 1e9f, std::nanf("")}) {
    EXPECT_EQ(wrong_field([&] { engine.check(guided({nonsense})); }), "guidance");
  }
}

TEST_F(Branches, AreMeasured) {
  options_of(three_branch_toy_family());
  StepBenchRequest asked;
  asked.family = "toy_three";
  asked.width = 20;
  asked.height = 12;
  asked.text_tokens = 7;
  asked.layers = 1;
  asked.device = "cpu";
  asked.threads = 1;
  asked.steps = 1;
  asked.tuning = Tuning::off;
  const StepBench bench = bench_step(asked);
  ASSERT_EQ(bench.branches.size(), 3u);
  EXPECT_EQ(bench.branches[1].name, "negative");
  EXPECT_EQ(bench.branches[1].tokens, 5 * 3 + 7);
  EXPECT_EQ(bench.branches[2].tokens, 5 * 3);
  EXPECT_GT(bench.ms(), 0);
}

}  // namespace
}  // namespace octet::test
