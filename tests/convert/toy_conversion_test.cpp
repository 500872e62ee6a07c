// The toy family through conversion and calibration.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "backend/backend.h"
#include "devices/select.h"
#include "engine/toy_fixture.h"
#include "octet/inspect.h"
#include "octet/quantize.h"
#include "quant/activations.h"

namespace octet::test {
namespace {

namespace fs = std::filesystem;

class ToyConversion : public ToyFamily {
 protected:
  static QuantizeRequest quantization(const std::string& recipe, const std::string& name) {
    QuantizeRequest made;
    made.source = model_;
    made.out = folder_->file(name);
    made.recipe = parse_recipe(recipe);
    made.verify = true;
    made.measure = true;
    made.device = "cpu";
    made.threads = 1;
    made.calibration_size = {16, 16};
    made.calibration_steps = 2;
    return made;
  }

  static std::vector<std::string> caption_files() {
    const std::string lone = folder_->write("lone.txt", "a blue door");
    const std::string captions = folder_->file("captions");
    fs::create_directories(captions);
    folder_->write("captions/b.txt", "two cats");
    folder_->write("captions/a.txt", "{ not JSON");
    folder_->write("captions/notes.md", "");
    return {lone, captions};
  }

  // The INT8 network of `out` in the model's place, on cpu and on ref.
  static void expect_runs_in_int8(const std::string& out, int int8, int protected_) {
    const ModelOptions as_float = [] {
      ModelOptions made = options();
      made.linears = Linears::floating;
      return made;
    }();
    ModelOptions quantized = options(out);
    quantized.base = model_;
    const std::string reason =
        select_backend({.device = "cpu", .threads = 1})->why_not_native_int8();
    quantized.require_int8 = reason.empty();
    const Rendered made = render(quantized);
    EXPECT_EQ(made.report.linears.int8, int8);
    EXPECT_EQ(made.report.linears.protected_, protected_);
    EXPECT_EQ(made.report.linears.kept, kKept);
    EXPECT_GT(cosine(made.latent, render(as_float).latent), 0.99);
    quantized.device = "ref";
    quantized.require_int8 = false;
    EXPECT_GT(cosine(render(quantized).latent, made.latent), kSameInBf16);
    if (!reason.empty()) GTEST_SKIP() << "without require_int8: " << reason;
  }
};

TEST_F(ToyConversion, RowwiseRunsInInt8) {
  const QuantizeReport report = quantize(quantization("rowwise", "rowwise"), nullptr);
  ASSERT_EQ(report.networks.size(), 1u);
  EXPECT_EQ(report.networks.front().network, "denoiser");
  EXPECT_EQ(report.networks.front().int8, kModules * kBlocks);
  EXPECT_EQ(report.networks.front().protected_, 0);
  EXPECT_EQ(report.networks.front().kept, kKept);
  EXPECT_EQ(report.errors.size(), size_t{kModules * kBlocks});
  EXPECT_TRUE(report.verified);
  // What loading makes of the source.
  ModelOptions quantized = options(folder_->file("rowwise"));
  quantized.base = model_;
  EXPECT_TRUE(same(render(quantized), render(options())));
  expect_runs_in_int8(folder_->file("rowwise"), kLinears * kBlocks, 0);
}

TEST_F(ToyConversion, ConvrotRunsInInt8WhereGroupsFitAndWhereNot) {
  QuantizeRequest asked = quantization("convrot", "convrot");
  asked.protect.patterns = {"stack.*.tell"};
  const QuantizeReport report = quantize(asked, nullptr);
  EXPECT_EQ(report.networks.front().int8, (kModules - 1) * kBlocks);
  EXPECT_EQ(report.networks.front().protected_, kBlocks);
  expect_runs_in_int8(folder_->file("convrot"), (kLinears - 1) * kBlocks, kBlocks);

  std::map<std::string, std::string> formats;
  const ModelSummary summary = inspect_model(folder_->file("convrot"));
  for (const StoredLinear& linear : summary.parts.front().linears) {
    formats[linear.name] = linear.format;
  }
  EXPECT_TRUE(contains(formats.at("stack.0.look"), "ConvRot 16")) << formats.at("stack.0.look");
  EXPECT_FALSE(contains(formats.at("stack.0.down"), "ConvRot")) << formats.at("stack.0.down");
}

TEST_F(ToyConversion, SmoothquantTakesItsOwnCaptions) {
  for (const auto& [name, dialect] :
       {std::pair{"folded", OutputDialect::comfyui}, {"said", OutputDialect::transformerlab}}) {
    SCOPED_TRACE(name);
    QuantizeRequest asked = quantization("smoothquant", name);
    asked.dialect = dialect;
    asked.captions = caption_files();
    const QuantizeReport report = quantize(asked, nullptr);
    EXPECT_EQ(report.networks.front().int8, kModules * kBlocks);
    EXPECT_EQ(report.networks.front().kept, kKept);
    expect_runs_in_int8(report.files.front(), kLinears * kBlocks, 0);

    std::set<std::string> expected = {"denoiser.lift", "denoiser.words", "denoiser.clock",
                                      "denoiser.drop"};
    for (int block = 0; block < kBlocks; ++block) {
      for (const char* linear : {"look", "tell", "gate", "down"}) {
        expected.insert("denoiser.stack." + std::to_string(block) + "." + linear);
      }
    }
    std::set<std::string> names;
    for (const auto& [linear, inputs] : quant::read_statistics(statistics_path(asked))) {
      names.insert(linear);
      EXPECT_GT(inputs.rows_seen, 0u) << linear;
    }
    EXPECT_EQ(names, expected);
  }
}

TEST_F(ToyConversion, WrongConversionsSpeakOfItsOwnNames) {
  QuantizeRequest asked = quantization("rowwise", "wrong");
  asked.protect.patterns = {"layers.*"};
  const std::string sentence = error_of([&] { quantize(asked, nullptr); });
  EXPECT_TRUE(contains(sentence, "stack.1.down")) << sentence;
  EXPECT_FALSE(contains(sentence, "attention")) << sentence;
  asked = quantization("rowwise", "wrong");
  asked.network = "conditional";
  EXPECT_EQ(wrong_field([&] { quantize(asked, nullptr); }), "network");
  asked = quantization("smoothquant", "wrong");
  asked.captions = {folder_->write("empty.txt", "")};
  EXPECT_ERROR_WITH(quantize(asked, nullptr), "empty.txt");
}

}  // namespace
}  // namespace octet::test
