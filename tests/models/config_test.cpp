// The config.json of each part: what is read, and every wrong number with its key in the sentence.
#include "models/flux2_vae/config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/error_message.h"
#include "formats/temporary_folder.h"
#include "models/config_fields.h"
#include "models/ideogram4/config.h"
#include "models/qwen3/config.h"

namespace octet::test {
using namespace octet::qwen3;
using namespace octet::flux2_vae;
namespace {

using namespace ideogram4;  // NOLINT: this file is about it
using Json = nlohmann::json;

Json dit_json() {
  return {{"_class_name", "Ideogram4Transformer2DModel"},
          {"in_channels", 16},
          {"num_layers", 2},
          {"num_attention_heads", 4},
          {"attention_head_dim", 8},
          {"intermediate_size", 48},
          {"adaln_dim", 16},
          {"llm_features_dim", 208},
          {"rope_theta", 10000},
          {"mrope_section", {2, 1, 1}},
          {"norm_eps", 1e-5}};
}

Json text_json() {
  return {{"hidden_size", 16},        {"num_hidden_layers", 36}, {"num_attention_heads", 4},
          {"num_key_value_heads", 2}, {"head_dim", 8},           {"intermediate_size", 24},
          {"vocab_size", 448},        {"rms_norm_eps", 1e-6},    {"rope_theta", 5'000'000.0},
          {"hidden_act", "silu"},     {"attention_bias", false}};
}

Json vae_json() {
  return {{"_class_name", "AutoencoderKLFlux2"},
          {"act_fn", "silu"},
          {"out_channels", 3},
          {"patch_size", {2, 2}},
          {"latent_channels", 4},
          {"norm_num_groups", 2},
          {"layers_per_block", 1},
          {"mid_block_add_attention", true},
          {"use_post_quant_conv", true},
          {"batch_norm_eps", 1e-4},
          {"block_out_channels", {8, 16}},
          {"up_block_types", {"UpDecoderBlock2D", "UpDecoderBlock2D"}}};
}

class Config : public testing::Test {
 protected:
  DitConfig dit(const Json& json) { return read_dit_config(write(json)); }
  TextConfig text(const Json& json) { return read_text_config(write(json)); }
  VaeConfig vae(const Json& json) { return read_vae_config(write(json)); }

  // Every value, under `key`, must be refused by a sentence that names file and key.
  template <class Read>
  void expect_refused(Json json, const std::string& key, const std::vector<Json>& values,
                      Read read) {
    for (const Json& value : values) {
      json[key] = value;
      const std::string message = error_of([&] { read(json); });
      EXPECT_TRUE(contains(message, key) && contains(message, "config.json"))
          << key << " = " << value << ": " << message;
    }
  }

 private:
  std::string write(const Json& json) { return folder_.write("config.json", json.dump()); }

  TemporaryFolder folder_;
};

const std::vector<Json> kNoCounts = {-1,
                                     0,
                                     1e30,
                                     3.5,
                                     "8",
                                     true,
                                     Json::array({8}),
                                     Json::object(),
                                     uint64_t{1} << 63,
                                     int64_t{1} << 62};
const std::vector<Json> kNoBooleans = {0, 1, "true", Json::array()};
const std::vector<Json> kNoArrays = {8,
                                     "8",
                                     Json::object(),
                                     Json::array(),
                                     Json::array({-1, 8}),
                                     Json::array({"8", 8}),
                                     Json::array({1e30, 8}),
                                     Json::array({3.5, 8})};

TEST_F(Config, OfATransformer) {
  const DitConfig config = dit(dit_json());
  EXPECT_EQ(config.latent_channels, 16);
  EXPECT_EQ(config.layers, 2);
  EXPECT_EQ(config.hidden(), 32);
  EXPECT_EQ(config.ffn, 48);
  EXPECT_EQ(config.modulation, 16);
  EXPECT_EQ(config.text_features, 208);
  EXPECT_EQ(config.rope_theta, 10000);
  EXPECT_EQ(config.mrope_section, (std::array<int64_t, 3>{2, 1, 1}));
  EXPECT_EQ(config.norm_eps, 1e-5f);
}

TEST_F(Config, AbsentAndNullKeysAreThePublishedOnes) {
  EXPECT_EQ(dit(Json::object()), DitConfig());
  EXPECT_EQ(dit({{"num_layers", nullptr}}), DitConfig());
  EXPECT_EQ(vae(Json::object()).channels, VaeConfig().channels);
  EXPECT_EQ(text({{"rope_theta", 1e4}}).hidden, TextConfig().hidden);
}

TEST_F(Config, OfATransformerWithWrongNumbers) {
  const auto read = [this](const Json& json) { dit(json); };
  for (const char* key : {"in_channels", "num_layers", "num_attention_heads", "attention_head_dim",
                          "intermediate_size", "adaln_dim", "llm_features_dim"}) {
    expect_refused(dit_json(), key, kNoCounts, read);
  }
  expect_refused(dit_json(), "in_channels", {18}, read);
  expect_refused(dit_json(), "attention_head_dim", {7}, read);
  expect_refused(dit_json(), "mrope_section", kNoArrays, read);
  expect_refused(dit_json(), "mrope_section", {Json::array({2, 3, 1}), Json::array({2, 1, 1, 1})},
                 read);
  expect_refused(dit_json(), "rope_theta", {-1, 0, 1e30, "1e4", Json::array()}, read);
  expect_refused(dit_json(), "norm_eps", {-1e-5, 2, "1e-5", false}, read);
  expect_refused(dit_json(), "_class_name", {"FluxTransformer2DModel", 3, Json::array()}, read);
  Json wide = dit_json();
  wide["num_attention_heads"] = 4096;
  wide["attention_head_dim"] = 4096;
  EXPECT_ERROR_WITH(dit(wide), "4096 heads of 4096 channels");
}

TEST_F(Config, OfATextEncoder) {
  for (const bool nested : {false, true}) {
    const TextConfig config = text(nested ? Json{{"text_config", text_json()}} : text_json());
    EXPECT_EQ(config.hidden, 16);
    EXPECT_EQ(config.layers, 36);
    EXPECT_EQ(config.heads, 4);
    EXPECT_EQ(config.kv_heads, 2);
    EXPECT_EQ(config.head_dim, 8);
    EXPECT_EQ(config.ffn, 24);
    EXPECT_EQ(config.vocabulary, 448);
    EXPECT_EQ(config.rope_theta, 5e6);
    EXPECT_EQ(config.norm_eps, 1e-6f);
  }
}

TEST_F(Config, TheBaseOfATextEncoderLiesInOneOfThreePlaces) {
  Json json = text_json();
  json.erase("rope_theta");
  EXPECT_ERROR_WITH(text(json), "rope_theta is missing");
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    Json with = json;
    with[key] = {{"rope_type", "default"}, {"rope_theta", 1234}};
    EXPECT_EQ(text(with).rope_theta, 1234);
    with[key]["rope_type"] = "yarn";
    EXPECT_ERROR_WITH(text(with), "rope_type is \"yarn\"");
    with[key] = {{"rope_theta", "1234"}};
    EXPECT_ERROR_WITH(text(with), "rope_theta");
  }
}

TEST_F(Config, OfATextEncoderWithWrongNumbers) {
  const auto read = [this](const Json& json) { text(json); };
  for (const char* key : {"hidden_size", "num_hidden_layers", "num_attention_heads",
                          "num_key_value_heads", "head_dim", "intermediate_size", "vocab_size"}) {
    expect_refused(text_json(), key, kNoCounts, read);
  }
  expect_refused(text_json(), "head_dim", {7}, read);
  expect_refused(text_json(), "rope_theta", {-1, 0, 1e30, "1e4"}, read);
  expect_refused(text_json(), "rms_norm_eps", {-1, 2, "1e-6"}, read);
  expect_refused(text_json(), "hidden_act", {"gelu", 1}, read);
  expect_refused(text_json(), "attention_bias", {true, "false"}, read);
  for (const char* key : {"text_config", "rope_parameters", "rope_scaling"}) {
    expect_refused(text_json(), key, {3, "text", Json::array()}, read);
  }
  Json json = text_json();
  json["num_key_value_heads"] = 3;
  EXPECT_ERROR_WITH(text(json), "4 attention heads on 3 key-value heads");
}

TEST_F(Config, OfAVae) {
  const VaeConfig config = vae(vae_json());
  EXPECT_EQ(config.latent_channels, 4);
  EXPECT_EQ(config.channels, (std::vector<int64_t>{8, 16}));
  EXPECT_EQ(config.resnets, 2);
  EXPECT_EQ(config.groups, 2);
  EXPECT_EQ(config.factor(), 2);
  EXPECT_TRUE(config.mid_attention && config.post_quant_conv);
  EXPECT_EQ(config.statistics_eps, 1e-4f);
  Json narrower = vae_json();
  narrower["decoder_block_out_channels"] = {4, 6};
  EXPECT_EQ(vae(narrower).channels, (std::vector<int64_t>{4, 6}));
}

TEST_F(Config, OfAVaeWithWrongNumbers) {
  const auto read = [this](const Json& json) { vae(json); };
  for (const char* key : {"latent_channels", "norm_num_groups", "layers_per_block"}) {
    expect_refused(vae_json(), key, kNoCounts, read);
  }
  for (const char* key : {"block_out_channels", "decoder_block_out_channels"}) {
    expect_refused(vae_json(), key, kNoArrays, read);
  }
  expect_refused(vae_json(), "decoder_block_out_channels", {Json::array({8})}, read);
  expect_refused(vae_json(), "block_out_channels", {Json::array({2, 2, 2, 2, 2, 2, 2})}, read);
  for (const char* key : {"mid_block_add_attention", "use_post_quant_conv"}) {
    expect_refused(vae_json(), key, kNoBooleans, read);
  }
  expect_refused(vae_json(), "batch_norm_eps", {-1, 2, "1e-4"}, read);
  expect_refused(vae_json(), "act_fn", {"gelu"}, read);
  expect_refused(vae_json(), "out_channels", {4, "3"}, read);
  expect_refused(vae_json(), "patch_size", {Json::array({1, 1}), 2}, read);
  expect_refused(vae_json(), "_class_name", {"AutoencoderKL"}, read);
  expect_refused(vae_json(), "up_block_types",
                 {Json::array({"AttnUpDecoderBlock2D"}), Json::array({3}), "UpDecoderBlock2D", 3,
                  Json::array({"UpDecoderBlock2D"}), Json::object()},
                 read);
  Json odd = vae_json();
  odd["norm_num_groups"] = 3;
  EXPECT_ERROR_WITH(vae(odd), "8 channels do not divide into 3 groups");
}

TEST_F(Config, ThatIsNoObject) {
  for (const Json& json : {Json::array(), Json(3), Json("text"), Json(nullptr)}) {
    EXPECT_ERROR_WITH(dit(json), "expected an object");
    EXPECT_ERROR_WITH(text(json), "expected an object");
    EXPECT_ERROR_WITH(vae(json), "expected an object");
  }
}

}  // namespace
}  // namespace octet::test
