// One picture on two devices. Here both are the same GPU, with a stream, memory and a host thread
// each: what is tested is that they do not disturb each other.
#include <vector>

#include "cuda/cuda_support.h"
#include "models/golden_run.h"
#include "octet/engine.h"

namespace octet::test {
namespace {

class TwoDevicesOnGpu : public OnGpu {
 protected:
  static ModelOptions on(const char* device) {
    ModelOptions options;
    options.model = golden_path("model");
    options.convention = Convention::diffusers;
    options.device = device;
    options.tuning = Tuning::off;
    options.keep = {{.part = "", .where = Residency::device}};
    return options;
  }

  // Enough steps for recorded ones, of which some run one branch alone.
  static PictureRequest request() {
    PictureRequest made;
    made.caption = R"({"high_level_description":"a cat",)"
                   R"("compositional_deconstruction":{"background":"a wall","elements":[]}})";
    made.size = {64, 48};
    made.preset = "turbo";
    made.steps = 8;
    made.guidance = {3, 3, 3, 1, 1, 5, 5, 5};
    made.seed = 3;
    made.images = 2;
    return made;
  }

  struct Told {
    std::vector<std::vector<float>> latents;
    std::vector<std::vector<uint8_t>> pictures;
    RenderReport report;
  };
  static Told render(Engine& engine) {
    Told told;
    told.report = engine.render(
        request(),
        {.latent =
             [&](const LatentStep& step) {
               told.latents.emplace_back(step.latent.begin(), step.latent.end());
             },
         .picture = [&](const Picture& picture) { told.pictures.push_back(picture.rgb); }});
    return told;
  }
};

TEST_F(TwoDevicesOnGpu, GiveTheBitsOfOne) {
  if (!tokenizer::has_unicode_tables()) GTEST_SKIP() << "this build has no utf8proc";
  Engine one(on("cuda:0")), two(on("cuda:0,cuda:0"));
  const Told expected = render(one);
  for (int i = 0; i < 3; ++i) {
    const Told told = render(two);
    EXPECT_EQ(told.latents, expected.latents);
    EXPECT_EQ(told.pictures, expected.pictures);
    EXPECT_EQ(told.report.recorded_steps,
              i == 0 ? expected.report.recorded_steps : render(one).report.recorded_steps);
  }
  EXPECT_GT(expected.report.recorded_steps, 0);
  EXPECT_EQ(two.info().plan[2].device, "cuda:0");
}

TEST_F(TwoDevicesOnGpu, TakeWeightsFromHostMemory) {
  if (!tokenizer::has_unicode_tables()) GTEST_SKIP() << "this build has no utf8proc";
  Engine one(on("cuda:0"));
  ModelOptions waiting = on("cuda:0,cuda:0");
  waiting.keep = {{.part = "", .where = Residency::host}};
  Engine two(waiting);
  const Told expected = render(one), told = render(two);
  EXPECT_EQ(told.latents, expected.latents);
  EXPECT_EQ(told.pictures, expected.pictures);
}

TEST_F(TwoDevicesOnGpu, AreCancelled) {
  if (!tokenizer::has_unicode_tables()) GTEST_SKIP() << "this build has no utf8proc";
  Engine two(on("cuda:0,cuda:0"));
  const Told expected = render(two);
  RenderCallbacks callbacks;
  callbacks.latent = [&](const LatentStep& step) {
    if (step.step == 5) two.cancel();
  };
  EXPECT_THROW(two.render(request(), callbacks), Cancelled);
  EXPECT_EQ(render(two).latents, expected.latents);
}

}  // namespace
}  // namespace octet::test
