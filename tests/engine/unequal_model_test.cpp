// A model whose second transformer is smaller than its first, through everything that meets both.
#include "models/unequal_model.h"

#include <gtest/gtest.h>

#include "formats/error_message.h"
#include "formats/temporary_folder.h"
#include "models/sample_captions.h"
#include "octet/generate.h"
#include "octet/quantize.h"

namespace octet::test {
namespace {

class UnequalModel : public testing::Test {
 protected:
  void SetUp() override {
    if (!tokenizer::has_unicode_tables()) GTEST_SKIP() << "this build has no utf8proc";
    write_unequal_model(folder_.file("model"));
    request_.model.model = folder_.file("model");
    request_.model.convention = Convention::diffusers;
    request_.model.device = "cpu";
    request_.model.threads = 1;
    request_.picture.caption = with_elements("");
    request_.picture.size = {16, 16};
    request_.picture.steps = 2;
  }

  static std::vector<uint8_t> pixels(const GenerateRequest& request) {
    std::vector<uint8_t> rgb;
    generate(request, {.picture = [&](const Picture& picture) { rgb = picture.rgb; }});
    return rgb;
  }

  // Changes the layer that the second transformer has, or the one that it has not.
  std::string write_lora(int layer) const {
    constexpr int64_t kHidden = 32;
    const std::string module = fmt::format("layers.{}.attention.o", layer);
    const std::string file = folder_.file(fmt::format("lora-{}.safetensors", layer));
    write_tensors(
        file,
        {written(module + ".lora_A.weight", {1, kHidden}, std::vector<float>(kHidden, 0.3f)),
         written(module + ".lora_B.weight", {kHidden, 1}, std::vector<float>(kHidden, 0.2f))});
    return file;
  }

  TemporaryFolder folder_;
  GenerateRequest request_;
};

TEST_F(UnequalModel, IsGuidedBySmallerTransformer) {
  const auto guided = pixels(request_);
  GenerateRequest other = request_;
  other.picture.guidance = {1};
  EXPECT_NE(pixels(other), guided);
  other = request_;
  other.model.model = golden_path("model");
  EXPECT_NE(pixels(other), guided) << "with all layers of the second transformer";
}

TEST_F(UnequalModel, IsTheSameWhereverItsPartsAre) {
  const auto loaded = pixels(request_);
  for (const Residency where : {Residency::host, Residency::streamed}) {
    request_.model.keep = {{"", where}};
    EXPECT_EQ(pixels(request_), loaded);
  }
}

TEST_F(UnequalModel, LorasChangeTheLayersOfEach) {
  const auto plain = pixels(request_);
  request_.model.loras = {{.file = write_lora(0), .networks = {"uncond"}}};
  EXPECT_NE(pixels(request_), plain);
  request_.model.loras = {{.file = write_lora(1)}};
  EXPECT_NE(pixels(request_), plain);
  request_.model.loras = {{.file = write_lora(1), .networks = {"all"}}};
  EXPECT_ERROR_WITH(pixels(request_),
                    "\"layers.1.attention.o\" is not a linear of the unconditional network");
}

TEST_F(UnequalModel, IsCalibratedAndQuantizedInEveryDialect) {
  QuantizeRequest quantization;
  quantization.source = request_.model.model;
  quantization.recipe = parse_recipe("smoothquant");
  quantization.captions = {folder_.write("caption.json", with_elements(""))};
  quantization.calibration_size = {16, 16};
  quantization.calibration_steps = 2;
  quantization.verify = true;
  quantization.device = "cpu";
  quantization.threads = 1;
  for (const OutputDialect dialect : {OutputDialect::comfyui, OutputDialect::transformerlab}) {
    quantization.dialect = dialect;
    quantization.out = folder_.file(fmt::format("int8-{}", static_cast<int>(dialect)));
    const QuantizeReport report = quantize(quantization, {});
    ASSERT_EQ(report.networks.size(), 2u);
    EXPECT_EQ(report.networks[0].int8, 2 * report.networks[1].int8);
    GenerateRequest converted = request_;
    converted.model.model = quantization.out;
    converted.model.base = request_.model.model;
    EXPECT_EQ(pixels(converted).size(), 16u * 16 * 3);
  }
}

}  // namespace
}  // namespace octet::test
