// Which tensors of a file are a transformer's, and what its configuration is when only they tell.
#include "models/ideogram4/dit_source.h"

#include <gtest/gtest.h>

#include "formats/error_message.h"
#include "formats/temporary_folder.h"
#include "weights/written_tensors.h"

namespace octet::test {
namespace {

using namespace ideogram4;  // NOLINT: this file is about it

using Shapes = std::map<std::string, FileShape>;

// What the configuration is told from.
const Shapes kTelling = {
    {"embed_image_indicator.weight", {2, 256}},
    {"layers.0.attention.norm_q.weight", {128}},
    {"layers.1.attention.norm_q.weight", {128}},
    {"final_layer.linear.bias", {16}},
    {"adaln_proj.bias", {24}},
    {"layers.0.feed_forward.w1.weight", {48, 256}},
    {"llm_cond_norm.weight", {208}},
};

WrittenTensor zeros(const std::string& name, const FileShape& shape, DType dtype = DType::bf16) {
  int64_t bytes = bits_of(dtype) / 8;
  for (const int64_t extent : shape) bytes = extent == 0 ? 0 : bytes;
  for (const int64_t extent : shape) bytes = bytes == 0 ? 0 : bytes * extent;
  return {name, dtype, shape, std::vector<std::byte>(static_cast<size_t>(bytes))};
}

class DitSourceTest : public testing::Test {
 protected:
  std::string write(const Shapes& shapes, const std::string& prefix = "",
                    const std::map<std::string, std::string>& metadata = {}) {
    std::vector<WrittenTensor> tensors;
    for (const auto& [name, shape] : shapes) tensors.push_back(zeros(prefix + name, shape));
    const std::string path = folder_.file(std::to_string(files_++) + ".safetensors");
    write_tensors(path, tensors, metadata);
    return path;
  }
  DitConfig config(Shapes changes, const std::string& without = "") {
    for (const auto& [name, shape] : kTelling) changes.emplace(name, shape);
    changes.erase(without);
    return open_dit({write(changes)}, /*conditional=*/true).config;
  }

  TemporaryFolder folder_;
  int files_ = 0;
};

TEST_F(DitSourceTest, ConfigurationOfShapes) {
  const DitConfig found = config({});
  EXPECT_EQ(found.head_dim, 128);
  EXPECT_EQ(found.heads, 2);
  EXPECT_EQ(found.layers, 2);
  EXPECT_EQ(found.latent_channels, 16);
  EXPECT_EQ(found.modulation, 24);
  EXPECT_EQ(found.ffn, 48);
  EXPECT_EQ(found.text_features, 208);
  const DitConfig published;
  EXPECT_EQ(found.rope_theta, published.rope_theta);
  EXPECT_EQ(found.norm_eps, published.norm_eps);
  EXPECT_EQ(found.mrope_section, published.mrope_section);
  // A gap ends the layers: what lies behind it is left over.
  EXPECT_EQ(config({{"layers.3.attention.norm_q.weight", {128}}}).layers, 2);
}

TEST_F(DitSourceTest, OtherTensorsTellTheSame) {
  const std::string indicator = "embed_image_indicator.weight";
  const DitConfig expected = config({});
  EXPECT_EQ(config({{"layers.0.attention.o.weight", {256, 256}}}, indicator), expected);
  EXPECT_EQ(config({{"layers.0.attention.to_out.0.weight", {256, 256}}}, indicator), expected);
  EXPECT_EQ(config({{"layers.0.attention.o.wq", {256, 256}}}, indicator), expected);
  EXPECT_EQ(config({{"layers.0.feed_forward.w1.wq", {48, 256}}}, "layers.0.feed_forward.w1.weight"),
            expected);
}

TEST_F(DitSourceTest, PackedWeightsTellTheFfnToo) {
  std::vector<WrittenTensor> tensors;
  for (const auto& [name, shape] : kTelling) {
    const bool packed = name == "layers.0.feed_forward.w1.weight";
    tensors.push_back(packed ? zeros(name, {48 * 256 / 2, 1}, DType::u8) : zeros(name, shape));
  }
  write_tensors(folder_.file("nf4.safetensors"), tensors);
  EXPECT_EQ(open_dit({folder_.file("nf4.safetensors")}, true).config, config({}));
}

TEST_F(DitSourceTest, WhatCannotBeToldIsNamed) {
  const auto without = [&](const std::string& name) { return error_of([&] { config({}, name); }); };
  EXPECT_TRUE(contains(without("layers.0.attention.norm_q.weight"), "the head size"));
  EXPECT_TRUE(contains(without("embed_image_indicator.weight"), "the number of heads"));
  EXPECT_TRUE(contains(without("final_layer.linear.bias"), "latent channels"));
  EXPECT_TRUE(contains(without("adaln_proj.bias"), "the conditioning size"));
  EXPECT_TRUE(contains(without("layers.0.feed_forward.w1.weight"), "the FFN's size"));
  EXPECT_TRUE(contains(without("adaln_proj.bias"), "`base`"));
}

TEST_F(DitSourceTest, HostileShapes) {
  constexpr int64_t kHuge = int64_t{1} << 55;
  const struct {
    const char* name;
    FileShape shape;
  } cases[] = {
      {"embed_image_indicator.weight", {0, kHuge}},
      {"embed_image_indicator.weight", {0, 128 * kHuge}},
      {"embed_image_indicator.weight", {2, 257}},  // no whole heads
      {"embed_image_indicator.weight", {2, 0}},
      {"embed_image_indicator.weight", {256}},
      {"layers.0.attention.norm_q.weight", {0}},
      {"layers.0.attention.norm_q.weight", {64}},   // the published rotary does not fit
      {"layers.0.attention.norm_q.weight", {512}},  // more than all channels
      {"layers.0.attention.norm_q.weight", {1, 128}},
      {"final_layer.linear.bias", {0}},
      {"final_layer.linear.bias", {3}},
      {"adaln_proj.bias", {0}},
      {"layers.0.feed_forward.w1.weight", {kHuge, 0}},
      {"layers.0.feed_forward.w1.weight", {0, 256}},
  };
  for (const auto& each : cases) {
    const std::string message = error_of([&] { config({{each.name, each.shape}}); });
    EXPECT_TRUE(contains(message, ".safetensors: ")) << each.name << ": " << message;
  }
}

TEST_F(DitSourceTest, ConfigurationIsTakenFromTheNearest) {
  DitConfig told = config({});
  told.rope_theta = 7;
  const std::string entry(weights::kConfigEntry);
  const std::string file = write(kTelling, "", {{entry, config_text(told)}});
  EXPECT_EQ(open_dit({file}, true).config, told);
  // Of a base, only where the file says nothing.
  const std::string base = folder_.file("base");
  std::filesystem::create_directory(base);
  DitConfig of_base = told;
  of_base.rope_theta = 11;
  folder_.write("base/config.json", config_text(of_base));
  std::filesystem::copy(file, base + "/model.safetensors");
  EXPECT_EQ(open_dit({file, base}, true).config, told);
  EXPECT_EQ(open_dit({write(kTelling), base}, true).config, of_base);
  EXPECT_EQ(open_dit({base}, true).config, of_base);  // config.json before metadata
  EXPECT_ERROR_WITH(open_dit({write(kTelling, "", {{entry, "{"}})}, true).config, entry);
}

TEST_F(DitSourceTest, ConfigurationsSurviveTheirText) {
  DitConfig config;
  config.norm_eps = 1e-6f;
  config.mrope_section = {24, 20, 20};
  folder_.write("config.json", config_text(config));
  EXPECT_EQ(read_dit_config(folder_.file("config.json")), config);
}

TEST_F(DitSourceTest, PrefixesByBranch) {
  const auto opens = [&](const std::string& prefix, bool conditional) {
    const std::string path = write(kTelling, prefix);
    EXPECT_TRUE(is_dit(path)) << prefix;
    return open_dit({path}, conditional).weights.find("adaln_proj.bias") != nullptr;
  };
  for (const char* prefix : {"", "model.diffusion_model.", "diffusion_model.", "transformer."}) {
    EXPECT_TRUE(opens(prefix, true)) << prefix;
    EXPECT_TRUE(opens(prefix, false)) << prefix;
    EXPECT_FALSE(has_branch(write(kTelling, prefix), true));
    EXPECT_FALSE(has_branch(write(kTelling, prefix), false));
  }
  for (const char* prefix : {"conditional.", "cond.", "conditional_transformer."}) {
    EXPECT_TRUE(opens(prefix, true)) << prefix;
    EXPECT_ERROR_WITH(opens(prefix, false), "the unconditional network");
    EXPECT_TRUE(has_branch(write(kTelling, prefix), true));
    EXPECT_FALSE(has_branch(write(kTelling, prefix), false));
  }
  for (const char* prefix : {"unconditional.", "uncond.", "unconditional_transformer."}) {
    EXPECT_TRUE(opens(prefix, false)) << prefix;
    EXPECT_ERROR_WITH(opens(prefix, true), "the conditional network");
  }
}

TEST_F(DitSourceTest, BothBranchesStandApart) {
  Shapes shapes;
  for (const auto& [name, shape] : kTelling) {
    shapes["conditional." + name] = shape;
    if (name != "llm_cond_norm.weight") shapes["unconditional." + name] = shape;
  }
  const std::string path = write(shapes);
  const DitSource conditional = open_dit({path}, true), other = open_dit({path}, false);
  EXPECT_NE(conditional.weights.find("llm_cond_norm.weight"), nullptr);
  EXPECT_EQ(other.weights.find("llm_cond_norm.weight"), nullptr);
  EXPECT_EQ(other.weights.full_name("adaln_proj.bias"), "unconditional.adaln_proj.bias");
}

TEST_F(DitSourceTest, WhatIsNoTransformer) {
  EXPECT_FALSE(is_dit(write({{"model.layers.0.mlp.up_proj.weight", {2, 2}}})));
  EXPECT_FALSE(is_dit(write({{"layers.00.weight", {2, 2}}, {"layers", {1}}})));
  EXPECT_FALSE(is_dit(write({})));
  EXPECT_FALSE(is_dit(folder_.file("nothing")));
  EXPECT_FALSE(is_dit(folder_.write("broken.safetensors", "no header")));
  EXPECT_ERROR_WITH(open_dit({write({{"a.weight", {2, 2}}})}, true), "has no tensors");
}

TEST(DitSource, IgnoredNames) {
  for (const bool conditional : {true, false}) {
    EXPECT_EQ(is_ignored("llm_cond_proj.weight", conditional), !conditional);
    EXPECT_EQ(is_ignored("conditional.layers.0.x", conditional), !conditional);
    EXPECT_EQ(is_ignored("uncond.layers.0.x", conditional), conditional);
    EXPECT_TRUE(is_ignored("rotary_emb.inv_freq", conditional));
    EXPECT_TRUE(is_ignored("vae.decoder.conv_in.weight", conditional));
    EXPECT_FALSE(is_ignored("layers.0.attention.lora_A.weight", conditional));
    EXPECT_FALSE(is_ignored("scaled_fp8.weight", conditional));
  }
}

}  // namespace
}  // namespace octet::test
