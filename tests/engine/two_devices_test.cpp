// One picture on two devices: here two backends of the CPU. Nothing of it may differ from the same
// picture on one.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "cpu/cpu_backend.h"
#include "engine/requests.h"
#include "engine/toy_fixture.h"
#include "models/golden_run.h"
#include "octet/generate.h"
#include "octet/tools/bench_e2e.h"
#include "weights/written_tensors.h"

namespace octet::test {
namespace {

// All that a render tells.
struct ToldOfRender {
  std::vector<std::vector<float>> latents, velocities;  // of each step
  std::vector<std::vector<uint8_t>> previews;
  std::vector<Picture> pictures;
  RenderReport report;
};

ToldOfRender told_by(const std::function<RenderReport(const RenderCallbacks&)>& render) {
  ToldOfRender told;
  RenderCallbacks callbacks;
  callbacks.latent = [&](const LatentStep& step) {
    told.latents.emplace_back(step.latent.begin(), step.latent.end());
    told.velocities.emplace_back(step.velocity.begin(), step.velocity.end());
  };
  callbacks.preview = [&](const Preview& preview) { told.previews.push_back(preview.rgb); };
  callbacks.picture = [&](const Picture& picture) { told.pictures.push_back(picture); };
  told.report = render(callbacks);
  return told;
}

ToldOfRender told_by(Engine& engine, const PictureRequest& asked) {
  return told_by([&](const RenderCallbacks& callbacks) { return engine.render(asked, callbacks); });
}

void expect_same_told(const ToldOfRender& two, const ToldOfRender& one) {
  EXPECT_FALSE(one.latents.empty());
  EXPECT_EQ(two.latents, one.latents);
  EXPECT_EQ(two.velocities, one.velocities);
  EXPECT_EQ(two.previews, one.previews);
  ASSERT_EQ(two.pictures.size(), one.pictures.size());
  for (size_t i = 0; i < one.pictures.size(); ++i) {
    EXPECT_EQ(two.pictures[i].rgb, one.pictures[i].rgb);
    EXPECT_EQ(two.pictures[i].seed, one.pictures[i].seed);
  }
  EXPECT_EQ(two.report.checkpoint, one.report.checkpoint);
  ASSERT_EQ(two.report.branches.size(), one.report.branches.size());
  for (size_t i = 0; i < one.report.branches.size(); ++i) {
    EXPECT_EQ(two.report.branches[i].name, one.report.branches[i].name);
    EXPECT_EQ(two.report.branches[i].steps, one.report.branches[i].steps);
  }
  EXPECT_EQ(two.report.linears.int8, one.report.linears.int8);
  EXPECT_EQ(two.report.recorded_steps, one.report.recorded_steps);
}

class TwoDevices : public ToyFamily {
 protected:
  static ModelOptions on(const char* device, ModelOptions options) {
    options.device = device;
    return options;
  }
  static ModelOptions on_one(ModelOptions options) { return on("cpu", std::move(options)); }
  static ModelOptions on_two(ModelOptions options) { return on("cpu,cpu", std::move(options)); }

  static ModelOptions toy(const models::Family& family) {
    models::add_family(family);
    const std::string folder = folder_->file(std::string(family.name));
    if (!std::filesystem::exists(folder)) write_toy_model(folder, 1, family);
    return options(folder);
  }
  static PictureRequest toy_request(std::vector<float> guidance = {}) {
    PictureRequest made = request();
    made.negative = "grey sky";
    made.guidance = std::move(guidance);
    return made;
  }

  // Two networks, one for each device.
  static ModelOptions golden() {
    ModelOptions made = options(golden_path("model"));
    made.convention = Convention::diffusers;
    return made;
  }
  static PictureRequest golden_request(std::vector<float> guidance = {}) {
    PictureRequest made;
    made.caption = R"({"high_level_description":"a cat",)"
                   R"("compositional_deconstruction":{"background":"a wall","elements":[]}})";
    made.size = {32, 16};
    made.preset = "turbo";
    made.steps = 4;
    made.seed = 3;
    made.guidance = std::move(guidance);
    return made;
  }

  // A LoRA for a linear of the golden model's networks.
  static std::string write_golden_lora(const std::string& name, float value) {
    constexpr int64_t kHidden = 32;
    const std::string file = folder_->file(name);
    const std::string module = "transformer.layers.0.attention.to_out.0";
    write_tensors(
        file,
        {written(module + ".lora_A.weight", {1, kHidden}, std::vector<float>(kHidden, 0.1f)),
         written(module + ".lora_B.weight", {kHidden, 1}, std::vector<float>(kHidden, value))});
    return file;
  }

  static void expect_same_on_two(const ModelOptions& model, const PictureRequest& asked) {
    Engine one(on_one(model)), two(on_two(model));
    expect_same_told(told_by(two, asked), told_by(one, asked));
  }
};

#define NEED_UNICODE() \
  if (!tokenizer::has_unicode_tables()) GTEST_SKIP() << "this build has no utf8proc"

TEST_F(TwoDevices, GiveTheBitsOfOne) {
  for (const models::Family* family : {&negative_toy_family(), &three_branch_toy_family()}) {
    for (const Activations activations : {Activations::f32, Activations::bf16}) {
      ModelOptions model = toy(*family);
      model.activations = activations;
      for (const std::vector<float>& guidance :
           std::vector<std::vector<float>>{{}, {7}, {0, 1.5f, 3}, {1, 4, 1}, {0}}) {
        SCOPED_TRACE(testing::Message() << family->name << ", " << guidance.size());
        expect_same_on_two(model, toy_request(guidance));
      }
    }
  }
}

TEST_F(TwoDevices, WithTwoNetworksGiveTheBitsOfOne) {
  NEED_UNICODE();
  PictureRequest several = golden_request();
  several.images = 3;
  for (const PictureRequest& asked :
       {golden_request(), golden_request({1, 3, 1, 5}), golden_request({0, 0, 2, 2}), several}) {
    expect_same_on_two(golden(), asked);
  }
  ModelOptions checked = golden();
  checked.require_int8 = true;
  checked.activations = Activations::f32;
  expect_same_on_two(checked, golden_request());
}

TEST_F(TwoDevices, OfDifferentSpeedGiveTheBitsOfOne) {
  NEED_UNICODE();
  const std::atomic<bool> stop{false};
  const auto render = [&](const ModelOptions& model, const std::vector<int>& threads) {
    std::vector<std::unique_ptr<Backend>> backends;
    for (const int count : threads) backends.push_back(make_cpu_backend({.threads = count}));
    engine::Session session({.model = model}, stop, std::move(backends),
                            models::family_of(model.model));
    const auto job = engine::make_job(session.facts(), golden_request());
    return told_by(
        [&](const RenderCallbacks& callbacks) { return engine::render(session, *job, callbacks); });
  };
  const ToldOfRender one = render(on_one(golden()), {1});
  expect_same_told(render(on_two(golden()), {1, 3}), one);
  expect_same_told(render(on_two(golden()), {4, 1}), one);
}

TEST_F(TwoDevices, RenderRequestsInARow) {
  NEED_UNICODE();
  Engine one(on_one(golden())), two(on_two(golden()));
  PictureRequest other = golden_request({2});
  other.size = {16, 32};
  for (const PictureRequest& asked :
       {golden_request(), other, golden_request({1}), golden_request(), golden_request()}) {
    expect_same_told(told_by(two, asked), told_by(one, asked));
  }
  EXPECT_EQ(two.state().used_bytes, one.state().used_bytes) << "no network twice";
  two.unload();
  EXPECT_EQ(two.state().used_bytes, 0u);
  two.load(on_two(golden()));
  expect_same_told(told_by(two, other), told_by(one, other));
  two.warm_up({16, 16}, /*previews=*/true);
  expect_same_told(told_by(two, other), told_by(one, other));
}

TEST_F(TwoDevices, RenderASingleRequest) {
  NEED_UNICODE();
  const auto once = [](const ModelOptions& model) {
    return told_by([&](const RenderCallbacks& callbacks) {
      return generate({model, golden_request()}, callbacks);
    });
  };
  expect_same_told(once(on_two(golden())), once(on_one(golden())));
}

TEST_F(TwoDevices, TakeWeightsFromWhereverTheyWait) {
  NEED_UNICODE();
  Engine one(on_one(golden()));
  const ToldOfRender expected = told_by(one, golden_request());
  using Rules = std::vector<KeepRule>;
  for (const Rules& rules :
       {Rules{{"", Residency::streamed}}, Rules{{"unconditional_transformer", Residency::streamed}},
        Rules{{"transformer", Residency::streamed}}}) {
    ModelOptions placed = on_two(golden());
    placed.keep = rules;
    Engine two(placed);
    ToldOfRender told = told_by(two, golden_request());
    told.report.recorded_steps = expected.report.recorded_steps;
    expect_same_told(told, expected);
  }
  ModelOptions wrong = on_two(golden());
  wrong.keep = {{"vea", Residency::streamed}};
  EXPECT_ERROR_WITH(Engine{wrong}, "expected one of text_encoder, transformer, unconditional");
}

TEST_F(TwoDevices, SwitchLorasOnBoth) {
  NEED_UNICODE();
  const Lora of_both{.file = write_golden_lora("both.safetensors", 0.3f), .networks = {"all"}};
  const Lora of_second{.file = of_both.file, .networks = {"unconditional"}};
  Engine one(on_one(golden())), two(on_two(golden()));
  PictureRequest with_both = golden_request(), with_second = golden_request();
  with_both.loras = {of_both};
  with_second.loras = {of_second};
  for (const PictureRequest& asked : {with_both, golden_request(), with_second, with_second}) {
    expect_same_told(told_by(two, asked), told_by(one, asked));
  }
  one.set_loras({of_second});
  two.set_loras({of_second});
  expect_same_told(told_by(two, golden_request()), told_by(one, golden_request()));
  // A network that both devices have.
  models::add_family(negative_toy_family());
  const std::string file = folder_->file("tell.safetensors");
  write_tensors(file,
                {written("stack.0.tell.lora_A.weight", {1, 48}, std::vector<float>(48, 0.1f)),
                 written("stack.0.tell.lora_B.weight", {48, 1}, std::vector<float>(48, 0.2f))});
  Engine toy_one(on_one(toy(negative_toy_family()))), toy_two(on_two(toy(negative_toy_family())));
  PictureRequest toy_asked = toy_request();
  const ToldOfRender plain = told_by(toy_two, toy_asked);
  toy_asked.loras = {{.file = file}};
  const ToldOfRender changed = told_by(toy_two, toy_asked);
  expect_same_told(changed, told_by(toy_one, toy_asked));
  EXPECT_NE(changed.latents, plain.latents);
}

TEST_F(TwoDevices, EndWhenTheyAreCancelled) {
  NEED_UNICODE();
  Engine one(on_one(golden())), two(on_two(golden()));
  const ToldOfRender expected = told_by(one, golden_request());
  int64_t steps = 0;
  std::thread other;
  RenderCallbacks callbacks;
  callbacks.progress = [&](const RenderProgress& progress) {
    if (progress.stage != Stage::denoise) return true;
    steps = progress.done;
    if (steps == 2 && !other.joinable()) other = std::thread([&] { two.cancel(); });
    if (steps == 2) other.join();
    return true;
  };
  EXPECT_THROW(two.render(golden_request(), callbacks), Cancelled);
  EXPECT_EQ(steps, 2);
  expect_same_told(told_by(two, golden_request()), expected);
  // At any moment.
  for (const int microseconds : {0, 300, 1000, 3000, 10'000}) {
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
      two.cancel();
    });
    try {
      two.render(golden_request());
    } catch (const Cancelled&) {
    }
    later.join();
  }
  expect_same_told(told_by(two, golden_request()), expected);
}

TEST_F(TwoDevices, PassOnWhatEitherThrows) {
  const ModelOptions model = toy(negative_toy_family());
  Engine one(on_one(model)), two(on_two(model));
  const ToldOfRender expected = told_by(one, toy_request());
  const PictureRequest asked = toy_request();
  for (const std::string& text : {asked.caption, asked.negative}) {
    ToyDenoiser::refused = static_cast<int64_t>(text.size());
    EXPECT_ERROR_WITH(two.render(asked), "toy: does not like");
    ToyDenoiser::refused = -1;
    expect_same_told(told_by(two, asked), expected);
  }
}

TEST_F(TwoDevices, NameTheBranchThatIsBroken) {
  const ModelOptions model = toy(negative_toy_family());
  Engine one(on_one(model)), two(on_two(model));
  const PictureRequest asked = toy_request();
  for (const auto& [text, branch] :
       {std::pair(asked.caption, "positive"), std::pair(asked.negative, "negative")}) {
    ToyDenoiser::poisoned = static_cast<int64_t>(text.size());
    const std::string message = error_of([&] { two.render(asked); });
    EXPECT_TRUE(contains(message, std::string("the ") + branch + " branch returned")) << message;
    EXPECT_EQ(message, error_of([&] { one.render(asked); }));
    ToyDenoiser::poisoned = -1;
  }
  expect_same_told(told_by(two, asked), told_by(one, asked));
}

TEST_F(TwoDevices, EncodeTheNextTextAsOneDoes) {
  const ModelOptions model = toy(negative_toy_family());
  Engine one(on_one(model)), two(on_two(model));
  PictureRequest next = toy_request();
  next.caption = "a blue tree";
  const Job job = two.check(next);
  const ToldOfRender beside = told_by([&](RenderCallbacks callbacks) {
    callbacks.upcoming = [&] { return job; };
    return two.render(toy_request(), callbacks);
  });
  expect_same_told(beside, told_by(one, toy_request()));
  const ToldOfRender then = told_by(two, next);
  EXPECT_TRUE(then.report.text_cached);
  expect_same_told(then, told_by(one, next));
}

TEST_F(TwoDevices, SayWhatIsWhere) {
  NEED_UNICODE();
  Engine one(on_one(golden())), two(on_two(golden()));
  const EngineInfo info = two.info();
  ASSERT_EQ(info.plan.size(), 4u);
  EXPECT_EQ(info.plan[1].part, "transformer");
  EXPECT_EQ(info.plan[2].part, "unconditional_transformer");
  for (const PartPlace& place : info.plan) EXPECT_EQ(place.device, "cpu");
  EXPECT_EQ(one.info().plan[1].device, "");
  EXPECT_EQ(info.device, one.info().device + " and " + one.info().device);
  EXPECT_TRUE(contains(plan_text(info), "on the device, cpu"));
  EXPECT_FALSE(contains(plan_text(one.info()), ", cpu"));
  const RenderReport report = two.render(golden_request());
  EXPECT_EQ(report.device, info.device);
  EXPECT_TRUE(contains(report.places, "unconditional_transformer on cpu"));
  EXPECT_GE(two.state().peak_bytes, two.state().used_bytes);
  one.render(golden_request());
  const double ratio = two.estimate(two.check(golden_request())).seconds /
                       one.estimate(one.check(golden_request())).seconds;
  EXPECT_GT(ratio, 0);
  // Both devices of the toy have its network.
  Engine toy_two(on_two(toy(three_branch_toy_family())));
  ASSERT_EQ(toy_two.info().plan.size(), 4u);
  EXPECT_EQ(toy_two.info().plan[1].part, "denoiser");
  EXPECT_EQ(toy_two.info().plan[2].part, "denoiser");
}

TEST_F(TwoDevices, SayWhenOneIsIdle) {
  NEED_UNICODE();
  Engine two(on_two(golden()));
  const Job job = two.check(golden_request({1}));
  ASSERT_FALSE(job.warnings().empty());
  EXPECT_TRUE(contains(job.warnings().back(),
                       "the second of cpu,cpu has nothing to do, since no step runs the "
                       "unconditional branch"));
  EXPECT_TRUE(contains(two.check(golden_request({0})).warnings().back(), "the first of cpu,cpu"));
  const size_t usual = two.check(golden_request()).warnings().size();
  EXPECT_EQ(job.warnings().size(), usual + 1);
  expect_same_on_two(golden(), golden_request({1}));
}

TEST_F(TwoDevices, AreRefusedWhereTheyMakeNoSense) {
  const auto refused = [](ModelOptions model, const char* device, const char* why) {
    EXPECT_EQ(wrong_field([&] { Engine engine(on(device, model)); }), "device") << device;
    EXPECT_ERROR_WITH(Engine{on(device, model)}, why);
  };
  const ModelOptions model = toy(negative_toy_family());
  refused(toy(toy_family()), "cpu,cpu", "a step of Toy has one branch");
  ModelOptions unguided = model;
  unguided.guided = false;
  refused(unguided, "cpu,cpu", "no step is guided");
  refused(model, "cpu,cpu,cpu", "a list of 3, expected one device, or two");
  refused(model, "cpu,", "a list names devices as ref, cpu or cuda:<number>");
  refused(model, "auto,cpu", "a list names devices as ref, cpu or cuda:<number>");
  refused(model, "cpu,ref", "two of a kind");
  E2eBenchRequest bench;
  bench.family = "toy_negative";
  bench.device = "cpu,cpu";
  bench.size = {16, 12};
  EXPECT_EQ(wrong_field([&] { bench_e2e(bench); }), "device");
}

}  // namespace
}  // namespace octet::test
