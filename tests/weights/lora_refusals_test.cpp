// LoRA files that are refused, and in which words.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "weights/lora_files.h"

namespace octet::test {
namespace {

TEST_F(LoraTest, BadConfigurations) {
  const auto refused = [&](const std::string& json) {
    return refusal(pair("mlp_in"), {{"lora_adapter_metadata", json}});
  };
  EXPECT_TRUE(contains(refused("{"), "lora_adapter_metadata"));
  EXPECT_TRUE(contains(refused("[1]"), "expected an object"));
  EXPECT_TRUE(contains(refused(R"({"lora_alpha": "8"})"), "expected a finite number"));
  EXPECT_TRUE(contains(refused(R"({"alpha_pattern": 1})"), "expected an object"));
  EXPECT_TRUE(contains(refused(R"({"alpha_pattern": {".*in": 2}})"), "a regular expression"));
  EXPECT_TRUE(contains(refused(R"({"transformer.use_dora": true})"), "DoRA"));
}

TEST_F(LoraTest, NothingIsPassedOver) {
  const auto both = [](std::vector<WrittenTensor> first, const std::vector<WrittenTensor>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  };
  const auto good = pair("layers.0.at.o");
  const std::pair<std::vector<WrittenTensor>, const char*> cases[] = {
      {both(good, pair("layers.7.at.o")), "\"layers.7.at.o\" is not a linear of the model"},
      {both(good, pair("text_encoder.layers.0.at.o")), "is not a linear of the model"},
      {both(good, pair("lora_te_layers_0_at_o")), "is not a linear of the model"},
      {pair("lora_unet_mlp_alike"), "may be mlp.alike or mlp_alike"},
      {{good[0]}, "\"layers.0.at.o\" has no up matrix (lora_B)"},
      {{good[1]}, "\"layers.0.at.o\" has no down matrix (lora_A)"},
      {{written("mlp_in.alpha", {}, {1})}, "has an alpha and no matrices"},
      {both(good, {written("mlp_in.weight", {2, 3}, kProduct)}),
       "\"mlp_in.weight\" is not a tensor"},
      {both(good, {written("mlp_in.diff_b", {2}, kUp)}), "\"mlp_in.diff_b\" is not a tensor"},
      {both(good, {written("layers.0.at.o.lora_B.bias", {2}, kUp)}), "is not a tensor of a LoRA"},
      {both(good, pair("layers.0.at.to_o.0")), "changes rows that another tensor changes too"},
      {both(good, pair("transformer.layers.0.at.o")), "another tensor changes too"},
      {both(good, {written("layers.0.at.o.lora_down.weight", {1, 3}, kDown)}), "another name too"},
      {both(good, {written("layers.0.at.o.diff", {2, 3}, kProduct)}), "and matrices too"},
      {{written("mlp_in.diff", {3, 2}, kProduct)}, "has a difference [3, 2], expected [2, 3]"},
      {{good[0], written("layers.0.at.o.lora_B.weight", {3, 1}, kDown)},
       "has matrices [1, 3] and [3, 1], expected [rank, 3] and [2, rank]"},
      {{written("mlp_in.lora_A.weight", {3}, kDown), written("mlp_in.lora_B.weight", {2}, kUp)},
       "expected [rank, 3]"},
      {{written("mlp_in.lora_A.weight", {0, 3}, {}), written("mlp_in.lora_B.weight", {2, 0}, {})},
       "has matrices [0, 3] and [2, 0]"},
      {{written("mlp_in.lora_A.weight", {}, {1}), written("mlp_in.lora_B.weight", {}, {1})},
       "has matrices [] and []"},
      {both(pair("mlp_in"), {written("mlp_in.alpha", {2}, kUp)}), "not one finite number"},
      {both(pair("mlp_in"), {written("mlp_in.alpha", {}, {NAN})}), "not one finite number"},
      {both(pair("mlp_in"), {written<uint8_t>("mlp_in.alpha", DType::u8, {}, {1})}),
       "not one finite number"},
      {{written<uint8_t>("mlp_in.lora_A.weight", DType::u8, {1, 3}, {1, 2, 3}),
        written("mlp_in.lora_B.weight", {2, 1}, kUp)},
       "is U8, expected F32, BF16 or F16"},
      {{}, "has no tensors"},
      {{written("mlp_in.dora_scale", {2}, kUp)}, "part of a DoRA"},
      {{written("mlp_in.lora_magnitude_vector", {2}, kUp)}, "part of a DoRA"},
      {{written("lycoris_mlp_in.lokr_w1", {2}, kUp)}, "part of a LoKr"},
      {{written("lycoris_mlp_in.hada_w1_a", {2}, kUp)}, "part of a LoHa"},
      {{written("mlp_in.lora_mid.weight", {2}, kUp)}, "Tucker"},
      {pair("\x1b[2J"), "\\u001b[2J"},
  };
  for (const auto& [tensors, message] : cases) {
    const std::string got = refusal(tensors);
    EXPECT_TRUE(contains(got, message)) << message << "\n  " << got;
  }
}

TEST_F(LoraTest, LongListsAreCut) {
  std::vector<WrittenTensor> tensors;
  for (int i = 0; i < 20; ++i) {
    for (auto& each : pair("no." + std::to_string(i))) tensors.push_back(each);
  }
  const std::string message = refusal(tensors);
  EXPECT_TRUE(contains(message, "and 12 more")) << message;
}

TEST_F(LoraTest, DamagedNumbers) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  auto tensors = pair("mlp_in");
  tensors[0] = written(tensors[0].name, {1, 3}, {1, nan, 3});
  EXPECT_ERROR_WITH(change(lora(tensors), "mlp_in", 2), "\"mlp_in.lora_A.weight\" holds a NaN");
  tensors = pair("mlp_in");
  tensors[1] = written(tensors[1].name, {2, 1}, {1, nan});
  EXPECT_ERROR_WITH(change(lora(tensors), "mlp_in", 2), "\"mlp_in.lora_B.weight\" holds a NaN");
  tensors[1] = written(tensors[1].name, {2, 1}, {1, 3e38f});
  EXPECT_ERROR_WITH(change(lora(tensors), "mlp_in", 2), "overflows with the LoRA merged");
}

TEST_F(LoraTest, FilesThatAreNone) {
  const auto open = [](const std::string& path) {
    Lora({.file = path}, kNetworks, both_networks());
  };
  EXPECT_ERROR_WITH(open(folder_.file("absent.safetensors")), "absent.safetensors");
  EXPECT_ERROR_WITH(open(folder_.write("a.safetensors", "PK\x03\x04 pickled")), "a.safetensors");
}

}  // namespace
}  // namespace octet::test
