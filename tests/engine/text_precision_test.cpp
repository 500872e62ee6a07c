// The text encoder's linears in INT8, as an option of a model: what the report, the plan and the
// cache of prompts make of it, and how a comparison shows it.
#include <gtest/gtest.h>

#include "cpu/cpu_backend.h"
#include "models/golden_run.h"
#include "models/ideogram4/text_features.h"
#include "octet/engine.h"
#include "octet/tools/compare.h"

namespace octet::test {
namespace {

class TextPrecision : public testing::Test {
 protected:
  void SetUp() override {
    if (!tokenizer::has_unicode_tables()) GTEST_SKIP() << "this build has no utf8proc";
    floating_.model = golden_path("model");
    floating_.convention = Convention::diffusers;
    floating_.device = "cpu";
    floating_.threads = 1;
    int8_ = floating_;
    int8_.text_encoder_linears = Linears::int8;
    request_.caption = R"({"high_level_description":"a cat",)"
                       R"("compositional_deconstruction":{"background":"a wall","elements":[]}})";
    request_.size = {16, 16};
    request_.preset = "turbo";
    request_.steps = 2;
  }

  struct Rendered {
    std::vector<float> features;
    RenderReport report;
  };
  Rendered render(Engine& engine) const {
    Rendered made;
    made.report = engine.render(request_, {.text = [&](const TextFeatures& text) {
                                  EXPECT_EQ(std::ssize(text.values), text.tokens * text.channels);
                                  made.features.assign(text.values.begin(), text.values.end());
                                }});
    EXPECT_FALSE(made.features.empty());
    return made;
  }

  static constexpr int kLinears = 4 * static_cast<int>(ideogram4::kRunLayers);
  ModelOptions floating_, int8_;
  PictureRequest request_;
};

TEST_F(TextPrecision, ReportSaysWhatRan) {
  Engine floating(floating_), int8(int8_);
  const RenderReport plain = render(floating).report, quantized = render(int8).report;
  EXPECT_EQ(plain.text_linears.int8, 0);
  EXPECT_EQ(plain.text_linears.floating, kLinears);
  EXPECT_EQ(quantized.text_linears.int8, kLinears);
  EXPECT_EQ(quantized.text_linears.floating, 0);
  EXPECT_EQ(quantized.linears.int8, plain.linears.int8) << "those of the networks alone";
  for (const KernelUse& use : quantized.kernels) {
    if (!use.layer.starts_with("text.")) continue;
    EXPECT_EQ(use.path, "int8") << use.layer;
  }
  EXPECT_EQ(render(int8).report.text_linears.int8, kLinears) << "also of a cached caption";
}

TEST_F(TextPrecision, FakeInt8IsNotNative) {
  ModelOptions fake = floating_;
  fake.text_encoder_linears = Linears::fake;
  Engine engine(fake), native(int8_), floating(floating_);
  const Rendered made = render(engine);
  EXPECT_EQ(made.report.text_linears.fake, kLinears);
  EXPECT_NE(made.features, render(floating).features);
  EXPECT_LT(relative_error(made.features, render(native).features),
            relative_error(made.features, render(floating).features));
}

// On ref, whose weights have no padding: panels of a CPU's kernel are larger than this model.
TEST_F(TextPrecision, ThePlanCountsTheSmallerSize) {
  floating_.device = int8_.device = "ref";
  const Engine floating(floating_), int8(int8_);
  EXPECT_EQ(int8.info().plan[0].part, "text_encoder");
  EXPECT_LT(int8.info().plan[0].bytes, floating.info().plan[0].bytes);
  EXPECT_EQ(int8.info().plan[1].bytes, floating.info().plan[1].bytes);
}

TEST_F(TextPrecision, FeaturesAreTheSameWhereverTheEncoderWaits) {
  Engine resident(int8_);
  const Rendered expected = render(resident);
  for (const Residency where : {Residency::device, Residency::host, Residency::streamed}) {
    ModelOptions options = int8_;
    options.keep = {{.part = "text_encoder", .where = where}};
    Engine engine(options);
    const Rendered made = render(engine);
    EXPECT_EQ(made.features, expected.features);
    EXPECT_EQ(made.report.checkpoint, expected.report.checkpoint);
  }
}

TEST_F(TextPrecision, CachedFeaturesAreNotThoseOfTheOtherPrecision) {
  Engine engine(floating_);
  const Rendered floating = render(engine);
  EXPECT_EQ(render(engine).features, floating.features);
  engine.load(int8_);
  const Rendered int8 = render(engine);
  EXPECT_FALSE(int8.report.text_cached);
  EXPECT_NE(int8.features, floating.features);
  EXPECT_TRUE(render(engine).report.text_cached);
  engine.load(floating_);
  EXPECT_EQ(render(engine).features, floating.features);
}

TEST_F(TextPrecision, MayBeRequiredToBeNative) {
  if (!make_cpu_backend({.threads = 1})->why_not_native_int8().empty()) {
    GTEST_SKIP() << "this CPU has no INT8 instructions";
  }
  int8_.require_int8 = true;
  Engine engine(int8_);
  EXPECT_EQ(render(engine).report.text_linears.int8, kLinears);
}

TEST_F(TextPrecision, AComparisonShowsHowFarFeaturesAreApart) {
  CompareRequest request{.a = floating_, .b = int8_, .picture = request_};
  request.captions = {{.name = "cat", .text = request_.caption}};
  const CompareReport apart = compare(request);
  ASSERT_EQ(apart.texts.size(), 1u);
  const TextDifference& text = apart.texts.front();
  EXPECT_EQ(text.tokens, apart.a.text_tokens);
  EXPECT_LT(text.worst_cosine, text.mean_cosine);
  EXPECT_LT(text.mean_cosine, 1);
  EXPECT_GT(text.worst_cosine, 0.9) << "a tower of 8 channels";
  EXPECT_GT(text.max_abs, 0);
  request.b = floating_;
  const CompareReport equal = compare(request);
  EXPECT_EQ(equal.texts.front().max_abs, 0);
}

}  // namespace
}  // namespace octet::test
