// What diffusers and transformers computed, recorded, on the backends of this machine.
#include "cpu/cpu_backend.h"
#include "models/golden_run.h"
#include "models/ideogram4/schedule.h"
#include "models/qwen3/chat_prompt.h"
#include "ref/ref_backend.h"
#include "support.h"

namespace octet::test {
namespace {

class Golden : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Backend> backend_ =
      GetParam() == "ref" ? make_ref_backend() : make_cpu_backend({.threads = 2});
};

INSTANTIATE_TEST_SUITE_P(Backends, Golden, testing::Values("ref", "cpu"), print_name);

TEST_P(Golden, TextFeatures) { expect_golden_text(*backend_, DType::f32); }
TEST_P(Golden, TextFeaturesInBf16) { expect_golden_text(*backend_, DType::bf16); }
TEST_P(Golden, Velocities) { expect_golden_velocities(*backend_, DType::f32); }
TEST_P(Golden, VelocitiesInBf16) { expect_golden_velocities(*backend_, DType::bf16); }
TEST_P(Golden, VelocitiesOfInt8Linears) { expect_golden_int8(*backend_); }
TEST_P(Golden, DecodedImage) { expect_golden_decoding(*backend_, DType::f32); }
TEST_P(Golden, DecodedImageInBf16) { expect_golden_decoding(*backend_, DType::bf16); }
TEST_P(Golden, ImageFromCaptionAndNoise) { expect_golden_image(std::move(backend_)); }

TEST(GoldenTokens, OfTheCaption) {
  if (!tokenizer::has_unicode_tables()) GTEST_SKIP() << "this build has no utf8proc";
  const Expected expected;
  const auto caption = expected.read<char>("image.caption");
  const tokenizer::Tokenizer tokenizer(golden_path("model/tokenizer/tokenizer.json"));
  EXPECT_EQ(qwen3::encode_caption(tokenizer, {caption.data(), caption.size()}),
            expected.read<int32_t>("ids"));
}

// One rounding of a time near 1 apart: another quantile function.
TEST(GoldenSchedules, OfEveryPresetAndConvention) {
  const Expected expected;
  const auto expect_near = [](std::span<const float> got, const std::vector<float>& want) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 0x1p-23) << i;
  };
  for (const std::string convention : {"official", "diffusers"}) {
    for (const models::Preset& preset : ideogram4::presets()) {
      SCOPED_TRACE(convention + " " + std::string(preset.name));
      const auto made = ideogram4::make_schedule(
          {.preset = preset,
           .size = {1920, 1088},
           .convention = convention == "official" ? Convention::official : Convention::diffusers});
      const std::string name = "schedule." + convention + "." + std::string(preset.name);
      expect_near(std::span(made.times).first(made.deltas.size()),
                  expected.floats(name + ".times"));
      expect_near(made.deltas, expected.floats(name + ".steps"));
      EXPECT_EQ(made.guidance,
                expected.floats("schedule." + std::string(preset.name) + ".guidance"));
    }
  }
}

// Weights that were moved to another network must not pass: the bounds above can fail.
TEST(GoldenBounds, TellTheTwoTransformersApart) {
  const Expected expected;
  const auto backend = make_ref_backend();
  nn::Context ctx{*backend, DType::f32};
  const auto other = load_network(ctx, golden_path("model/unconditional_transformer"),
                                  /*conditional=*/true, /*int8=*/false);
  const auto velocity =
      velocity_of(ctx, *other.part, expected.floats("features"), expected.floats("latent"),
                  expected.floats("time")[0], expected);
  EXPECT_GT(relative_error(velocity, expected.floats("dit.velocity")),
            expected.bound("dit.velocity", DType::bf16));
}

}  // namespace
}  // namespace octet::test
