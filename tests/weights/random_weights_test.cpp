// Random models: the same numbers in memory and in a file, of the right size and spread.
#include "weights/random_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "formats/checkpoint.h"
#include "formats/error_message.h"
#include "formats/temporary_folder.h"
#include "models/flux2_vae/vae.h"
#include "models/ideogram4/dit.h"
#include "models/small_dit.h"
#include "ref/ref_backend.h"
#include "weights/loader.h"
#include "weights/random_checkpoint.h"

namespace octet::weights {
namespace {

using test::write_random_checkpoint;

flux2_vae::VaeConfig small_vae() {
  flux2_vae::VaeConfig config;
  config.latent_channels = 4;
  config.channels = {8, 16};
  config.resnets = 1;
  config.groups = 4;
  return config;
}

// What lies in the buffers that a model's list fills.
class Contents : public nn::WeightVisitor {
 public:
  void linear(nn::Linear& into, const nn::LinearSpec&) override {
    for (const nn::LinearPart& part : into.parts) {
      add(part.weight);
      add(part.bias);
    }
  }
  void conv(nn::Conv& into, const nn::ConvSpec&) override {
    add(into.matrix.weight);
    add(into.matrix.bias);
  }
  void vector(nn::Vector& into, const std::string&, int64_t) override { add(into.memory); }
  void table(nn::Table& into, const std::string&, int64_t, int64_t) override { add(into.memory); }

  std::vector<std::vector<std::byte>> buffers;

 private:
  void add(const Buffer& buffer) {
    buffers.emplace_back(buffer.data(), buffer.data() + buffer.bytes());
  }
};

template <class Model, class Visit>
void expect_file_equals_memory(const Visit& visit, const Model& empty, DType dtype) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("model.safetensors");
  const auto owned = make_ref_backend();
  Backend& backend = *owned;
  Model made, loaded;
  made.config = loaded.config = empty.config;
  write_random_checkpoint(
      path, [&](nn::WeightVisitor& v) { visit(made, v); }, 7, dtype);
  RandomWeights make(backend, {.seed = 7, .dtype = dtype, .int8 = false});
  visit(made, make);
  const WeightSource source(std::make_shared<Checkpoint>(path), "");
  Loader loader(source, backend, {.dtype = dtype, .int8 = false});
  visit(loaded, loader);
  Contents expected, got;
  visit(loaded, expected);
  visit(made, got);
  ASSERT_GT(expected.buffers.size(), 20u);
  EXPECT_EQ(got.buffers, expected.buffers);
}

TEST(RandomWeights, TransformerIsTheOneInTheFile) {
  ideogram4::Dit dit;
  dit.config = test::small_dit(2, 96);
  const auto visit = [](ideogram4::Dit& model, nn::WeightVisitor& v) {
    visit_weights(model, true, v);
  };
  expect_file_equals_memory(visit, dit, DType::f32);
}

TEST(RandomWeights, DecoderIsTheOneInTheFile) {
  flux2_vae::VaeDecoder vae;
  vae.config = small_vae();
  const auto visit = [](flux2_vae::VaeDecoder& model, nn::WeightVisitor& v) {
    visit_weights(model, v);
  };
  expect_file_equals_memory(visit, vae, DType::f32);
}

void write_small_dit(const std::string& path, uint64_t seed, DType dtype = DType::f32) {
  ideogram4::Dit dit;
  dit.config = test::small_dit(2, 96);
  write_random_checkpoint(
      path, [&](nn::WeightVisitor& v) { visit_weights(dit, true, v); }, seed, dtype);
}

TEST(RandomWeights, FileHasTheNamesOfHuggingFaceRepositories) {
  const test::TemporaryFolder folder;
  write_small_dit(folder.file("a.safetensors"), 1, DType::bf16);
  const Checkpoint checkpoint(folder.file("a.safetensors"));
  EXPECT_EQ(checkpoint.find("layers.0.attention.qkv.weight"), nullptr);
  ASSERT_NE(checkpoint.find("layers.1.attention.to_k.weight"), nullptr);
  EXPECT_EQ(checkpoint.find("layers.1.attention.to_k.weight")->shape, FileShape({64, 64}));
  EXPECT_EQ(checkpoint.find("layers.1.attention.to_k.weight")->dtype, DType::bf16);
  EXPECT_NE(checkpoint.find("layers.0.attention.to_out.0.weight"), nullptr);
}

TEST(RandomWeights, SeedAndNameDecide) {
  const test::TemporaryFolder folder;
  for (const auto& [name, seed] : {std::pair{"a", 1}, {"b", 1}, {"c", 2}}) {
    write_small_dit(folder.file(std::string(name) + ".safetensors"), static_cast<uint64_t>(seed));
  }
  const auto bytes = [&](const char* file, const char* tensor) {
    const Checkpoint checkpoint(folder.file(std::string(file) + ".safetensors"));
    const auto found = checkpoint.bytes(tensor);
    return std::vector<std::byte>(found.begin(), found.end());
  };
  const char* const q = "layers.0.attention.to_q.weight";
  EXPECT_EQ(bytes("a", q), bytes("b", q));
  EXPECT_NE(bytes("a", q), bytes("c", q));
  EXPECT_NE(bytes("a", q), bytes("a", "layers.0.attention.to_k.weight"));
  EXPECT_NE(bytes("a", q), bytes("a", "layers.1.attention.to_q.weight"));
}

TEST(RandomWeights, MeanAndDeviationAreAsAskedFor) {
  constexpr int64_t kCount = 1 << 16;
  std::vector<float> values(kCount);
  fill_random(3, {"x.weight", {kCount}, 0}, {1.0f, 0.5f}, 0, values);
  double sum = 0, squares = 0;
  for (const float value : values) sum += value;
  const double mean = sum / kCount;
  for (const float value : values) squares += (value - mean) * (value - mean);
  // Five standard errors of either estimate: 0.5 / 256, and 0.5 / (256 sqrt(2)).
  EXPECT_NEAR(mean, 1.0, 5 * 0.5 / 256);
  EXPECT_NEAR(std::sqrt(squares / kCount), 0.5, 5 * 0.5 / (256 * 1.414));
  const std::set<float> distinct(values.begin(), values.end());
  EXPECT_GT(distinct.size(), 10'000u);
  // A part that begins in the middle is the same tensor.
  std::vector<float> tail(16);
  fill_random(3, {"x.weight", {kCount}, 0}, {1.0f, 0.5f}, 1000, tail);
  EXPECT_TRUE(std::equal(tail.begin(), tail.end(), values.begin() + 1000));
}

TEST(RandomWeights, Int8IsTheSameModelButForItsRounding) {
  const auto owned = make_ref_backend();
  Backend& backend = *owned;
  std::vector<std::vector<float>> velocities;
  for (const bool int8 : {false, true}) {
    nn::Context ctx{backend, DType::f32};
    ideogram4::Dit dit;
    dit.config = test::small_dit(2, 96);
    RandomWeights make(backend, {.seed = 5, .dtype = DType::f32, .int8 = int8});
    visit_weights(dit, true, make);
    EXPECT_EQ(dit.blocks[0].qkv.is_int8(), int8);
    EXPECT_EQ(dit.blocks[1].gate_up.is_int8(), int8);
    EXPECT_FALSE(dit.text.linear.is_int8());
    std::vector<float> features(3 * 40), latent(6 * 16);
    fill_random(1, {"features", {}, 0}, {0, 1}, 0, features);
    fill_random(1, {"latent", {}, 0}, {0, 1}, 0, latent);
    const auto prompt = prepare(ctx, dit, features, {2, 3});
    const float time = 0.5f;
    ideogram4::DitTimeline timeline(ctx, dit, {&time, 1});
    timeline.go_to(ctx, 0);
    const nn::Matrix velocity = ctx.matrix(6, 16);
    forward(ctx, dit, prompt, timeline, upload_matrix(ctx, latent.data(), 6, 16), velocity);
    velocities.emplace_back(6 * 16);
    download_matrix(ctx, velocity, velocities.back().data());
  }
  double error = 0, norm = 0;
  for (size_t i = 0; i < velocities[0].size(); ++i) {
    error += std::pow(velocities[1][i] - velocities[0][i], 2);
    norm += std::pow(velocities[0][i], 2);
  }
  EXPECT_GT(norm, 1.0);
  EXPECT_GT(error, 0.0);
  // A code is off by up to half a step of 1/30 deviation, 1 % in the mean, in each of eight
  // linears; a wrong order of rows would give an error of the size of the velocity.
  EXPECT_LT(std::sqrt(error / norm), 0.1);
}

TEST(RandomWeights, UnfinishedFileNeverAppears) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("a.safetensors");
  const auto give_up = [](nn::WeightVisitor&) { fail("no more"); };
  EXPECT_ERROR_WITH(write_random_checkpoint(path, give_up, 1, DType::f32), "no more");
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_ERROR_WITH(write_random_checkpoint(path, give_up, 1, DType::i8), "expected F32 or BF16");
}

TEST(WeightCount, PublishedModel) {
  ideogram4::Dit dit;
  WeightCount bf16(DType::bf16, false), int8(DType::bf16, true);
  visit_weights(dit, true, bf16);
  visit_weights(dit, true, int8);
  EXPECT_EQ(bf16.parameters(), 9'279'288'448);
  EXPECT_EQ(int8.parameters(), bf16.parameters());
  // 706 560 numbers of norms and roles; the norms' are F32 in memory.
  EXPECT_EQ(bf16.bytes(), 2 * bf16.parameters() + 2 * (706'560 - 2 * 4608));
  // The large linears of 34 blocks lose one byte of two, and gain a scale for each output.
  const int64_t d = 4608, f = 12288;
  const int64_t large = 34 * (4 * d * d + 3 * d * f), outputs = 34 * (3 * d + d + 2 * f + d);
  EXPECT_EQ(bf16.bytes() - int8.bytes(), large - 4 * outputs);
}

}  // namespace
}  // namespace octet::weights
