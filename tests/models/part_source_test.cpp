// What is told of a text encoder and of a VAE from the shapes of a single file, and what is
// refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "formats/error_message.h"
#include "formats/temporary_folder.h"
#include "formats/tensor_info.h"
#include "models/flux2_vae/vae_source.h"
#include "models/qwen3/text_source.h"

namespace octet::test {
using namespace octet::qwen3;
using namespace octet::flux2_vae;
namespace {

using Shapes = std::map<std::string, FileShape>;

class PartSource : public testing::Test {
 protected:
  // A file of zeros that takes no room on the disk, however large its tensors are.
  std::string write(const Shapes& shapes) const {
    nlohmann::json header = nlohmann::json::object();
    uint64_t end = 0;
    for (const auto& [name, shape] : shapes) {
      uint64_t bytes = 1;
      for (const int64_t extent : shape) bytes *= static_cast<uint64_t>(extent);
      header[name] = {{"dtype", "F8_E4M3"}, {"shape", shape}, {"data_offsets", {end, end + bytes}}};
      end += bytes;
    }
    const std::string text = header.dump();
    std::string file(8, '\0');
    for (size_t i = 0; i < file.size(); ++i) {
      file[i] = static_cast<char>(static_cast<uint64_t>(text.size()) >> (8 * i));
    }
    const std::string path = folder_.write("part.safetensors", file + text);
    std::filesystem::resize_file(path, 8 + text.size() + end);
    return path;
  }

  TemporaryFolder folder_;
};

// --- text encoders ---

Shapes text_shapes(const std::string& prefix, const std::string& vision) {
  Shapes shapes = {{prefix + "embed_tokens.weight", {151936, 4096}},
                   {prefix + "layers.0.self_attn.q_norm.weight", {128}},
                   {prefix + "layers.0.self_attn.q_proj.weight", {4096, 4096}},
                   {prefix + "layers.0.self_attn.k_proj.weight", {1024, 4096}},
                   {prefix + "layers.0.mlp.gate_proj.weight", {12288, 4096}},
                   {vision + "patch_embed.proj.bias", {1152}}};
  for (int i = 0; i < 36; ++i) {
    shapes[prefix + "layers." + std::to_string(i) + ".input_layernorm.weight"] = {4096};
  }
  return shapes;
}

TEST_F(PartSource, PublishedShapesOfATextEncoderNeedNoConfiguration) {
  const std::pair<std::string, std::string> writers[] = {{"model.", "model.visual."},
                                                         {"model.language_model.", "model.visual."},
                                                         {"language_model.", "visual."}};
  for (const auto& [prefix, vision] : writers) {
    const std::string path = write(text_shapes(prefix, vision));
    const TextSource source = open_text_encoder(path);
    EXPECT_EQ(source.described_by, path);
    EXPECT_EQ(source.config.layers, 36);
    EXPECT_EQ(source.config.heads, 32);
    EXPECT_EQ(source.config.kv_heads, 8);
    EXPECT_EQ(source.config.rope_theta, 5e6);
    EXPECT_EQ(source.config.norm_eps, 1e-6f);
    EXPECT_NE(source.weights.find("layers.0.self_attn.q_norm.weight"), nullptr);
  }
}

TEST_F(PartSource, OtherShapesOfATextEncoderAskForAConfiguration) {
  const std::map<std::string, std::vector<FileShape>> others = {
      {"model.embed_tokens.weight", {{151669, 4096}, {}, {0, 4096}, {1 << 30}}},
      {"model.layers.0.input_layernorm.weight", {{2560}, {}, {0}}},
      {"model.layers.0.self_attn.q_norm.weight", {{64}, {}, {0}}},
      {"model.layers.0.self_attn.q_proj.weight", {{2048, 4096}, {}, {8388608, 1}}},
      {"model.layers.0.self_attn.k_proj.weight", {{4096, 4096}, {}}},
      {"model.layers.0.mlp.gate_proj.weight", {{9728, 2560}, {}}}};
  for (const auto& [name, shapes] : others) {
    for (const FileShape& shape : shapes) {
      Shapes all = text_shapes("model.", "model.visual.");
      all[name] = shape;
      EXPECT_ERROR_WITH(qwen3::open_text_encoder(write(all)), "put its config.json next to it");
    }
    if (name == "model.embed_tokens.weight") continue;
    Shapes all = text_shapes("model.", "model.visual.");
    all.erase(name);
    EXPECT_ERROR_WITH(qwen3::open_text_encoder(write(all)), "put its config.json next to it");
  }
}

TEST_F(PartSource, AnotherNumberOfLayers) {
  Shapes shapes = text_shapes("model.", "model.visual.");
  shapes["model.layers.36.input_layernorm.weight"] = {4096};
  EXPECT_ERROR_WITH(qwen3::open_text_encoder(write(shapes)), "the number of layers is 37");
  shapes.erase("model.layers.7.input_layernorm.weight");
  EXPECT_ERROR_WITH(qwen3::open_text_encoder(write(shapes)), "the number of layers is 7");
}

TEST_F(PartSource, AModelOfTheSameShapesWithAnotherRotaryBase) {
  Shapes shapes = text_shapes("model.", "model.visual.");
  shapes.erase("model.visual.patch_embed.proj.bias");
  EXPECT_ERROR_WITH(qwen3::open_text_encoder(write(shapes)), "no vision tower");
}

TEST_F(PartSource, AConfigurationBesideATextEncoderCounts) {
  const std::string path = write({{"model.embed_tokens.weight", {256, 64}}});
  EXPECT_ERROR_WITH(qwen3::open_text_encoder(path), "config.json");
  folder_.write("config.json", R"({"hidden_size": 64, "rope_theta": 10000})");
  for (const std::string& given : {path, folder_.path()}) {
    const TextSource source = open_text_encoder(given);
    EXPECT_EQ(source.config.hidden, 64);
    EXPECT_EQ(source.config.rope_theta, 1e4);
    EXPECT_EQ(source.described_by, folder_.file("config.json"));
  }
}

TEST_F(PartSource, WhatIsNoTextEncoder) {
  EXPECT_ERROR_WITH(qwen3::open_text_encoder(write({{"decoder.conv_in.weight", {512, 32, 3, 3}}})),
                    "embed_tokens.weight");
  EXPECT_ERROR_WITH(qwen3::open_text_encoder(folder_.file("absent.safetensors")),
                    "absent.safetensors");
}

// --- VAEs ---

// The tensors that numbers of channels are read from, in the names of FLUX.2's authors or not; the
// coarsest level comes first.
Shapes vae_shapes(const std::vector<int64_t>& widths, bool of_authors) {
  Shapes shapes = {
      {"decoder.conv_in.weight", {widths.front(), 32, 3, 3}},
      {of_authors ? "decoder.mid.block_1.conv1.weight" : "decoder.mid_block.resnets.0.conv1.weight",
       {widths.front(), widths.front(), 3, 3}}};
  int64_t from = widths.front();
  for (size_t i = 0; i < widths.size(); ++i) {
    const std::string name =
        of_authors ? "decoder.up." + std::to_string(widths.size() - 1 - i) + ".block.0"
                   : "decoder.up_blocks." + std::to_string(i) + ".resnets.0";
    shapes[name + ".conv1.weight"] = {widths[i], from, 3, 3};
    from = widths[i];
  }
  return shapes;
}

TEST_F(PartSource, ChannelsOfAVae) {
  for (const bool of_authors : {false, true}) {
    flux2_vae::VaeConfig config =
        flux2_vae::open_vae(write(vae_shapes({512, 512, 256, 128}, of_authors))).config;
    EXPECT_EQ(config.channels, VaeConfig().channels);
    EXPECT_EQ(config.latent_channels, 32);
    EXPECT_EQ(config.groups, 32);
    EXPECT_EQ(config.resnets, 3);
    EXPECT_TRUE(config.mid_attention && config.post_quant_conv);
    config = flux2_vae::open_vae(write(vae_shapes({384, 320, 192, 96}, of_authors))).config;
    EXPECT_EQ(config.channels, (std::vector<int64_t>{96, 192, 320, 384}));
  }
}

TEST_F(PartSource, NamesOfFluxAuthors) {
  Shapes shapes = vae_shapes({512, 512, 256, 128}, true);
  shapes["decoder.post_quant_conv.weight"] = {32, 32, 1, 1};
  weights::WeightSource weights = flux2_vae::open_vae(write(shapes)).weights;
  const std::pair<const char*, const char*> names[] = {
      {"post_quant_conv.weight", "decoder.post_quant_conv.weight"},
      {"decoder.conv_in.bias", "decoder.conv_in.bias"},
      {"decoder.mid_block.resnets.0.norm1.bias", "decoder.mid.block_1.norm1.bias"},
      {"decoder.mid_block.resnets.1.conv2.weight", "decoder.mid.block_2.conv2.weight"},
      {"decoder.mid_block.attentions.0.group_norm.bias", "decoder.mid.attn_1.norm.bias"},
      {"decoder.mid_block.attentions.0.to_q", "decoder.mid.attn_1.q"},
      {"decoder.mid_block.attentions.0.to_k.bias", "decoder.mid.attn_1.k.bias"},
      {"decoder.mid_block.attentions.0.to_out.0", "decoder.mid.attn_1.proj_out"},
      {"decoder.up_blocks.0.resnets.2.conv1.weight", "decoder.up.3.block.2.conv1.weight"},
      {"decoder.up_blocks.2.resnets.0.conv_shortcut.bias",
       "decoder.up.1.block.0.nin_shortcut.bias"},
      {"decoder.up_blocks.1.upsamplers.0.conv.bias", "decoder.up.2.upsample.conv.bias"},
      {"decoder.up_blocks.3.resnets.1.norm2.weight", "decoder.up.0.block.1.norm2.weight"},
      {"decoder.conv_norm_out.weight", "decoder.norm_out.weight"},
      {"decoder.conv_out.weight", "decoder.conv_out.weight"}};
  for (const auto& [ours, theirs] : names) EXPECT_EQ(weights.full_name(ours), theirs);
  // ComfyUI keeps it at the root.
  shapes.erase("decoder.post_quant_conv.weight");
  weights = open_vae(write(shapes)).weights;
  EXPECT_EQ(weights.full_name("post_quant_conv.bias"), "post_quant_conv.bias");
}

TEST_F(PartSource, ImpossibleShapesOfAVae) {
  for (const bool of_authors : {false, true}) {
    const std::string first = of_authors ? "decoder.up.0.block.0.conv1.weight"
                                         : "decoder.up_blocks.3.resnets.0.conv1.weight";
    const std::string names[] = {first, "decoder.conv_in.weight"};
    for (const std::string& name : names) {
      const FileShape impossible[] = {
          {}, {512}, {0, 0, 3, 3}, {512, 512}, {512, 32, 3, 3, 1}, {1 << 15, 1 << 15, 1, 1}};
      for (const FileShape& shape : impossible) {
        Shapes shapes = vae_shapes({512, 512, 256, 128}, of_authors);
        shapes[name] = shape;
        EXPECT_ERROR_WITH(flux2_vae::open_vae(write(shapes)), "part.safetensors: ");
      }
      Shapes shapes = vae_shapes({512, 512, 256, 128}, of_authors);
      shapes.erase(name);
      EXPECT_ERROR_WITH(flux2_vae::open_vae(write(shapes)), name);
    }
    EXPECT_ERROR_WITH(flux2_vae::open_vae(write(vae_shapes({512, 512, 256, 100}, of_authors))),
                      "100 channels do not divide into 32 groups");
    EXPECT_ERROR_WITH(flux2_vae::open_vae(write(vae_shapes({512, 256, 128}, of_authors))),
                      "config.json");
  }
}

TEST_F(PartSource, AConfigurationBesideAVaeCounts) {
  const std::string path = write(vae_shapes({16, 8}, true));
  EXPECT_ERROR_WITH(flux2_vae::open_vae(path), "config.json");
  folder_.write("config.json", R"({"block_out_channels": [8, 16], "norm_num_groups": 4})");
  const VaeSource source = open_vae(path);
  EXPECT_EQ(source.config.groups, 4);
  EXPECT_EQ(source.weights.full_name("decoder.up_blocks.1.resnets.0.conv1.weight"),
            "decoder.up.0.block.0.conv1.weight");
  folder_.write("config.json", R"({"_class_name": "AutoencoderKL"})");
  EXPECT_ERROR_WITH(flux2_vae::open_vae(path), "AutoencoderKLFlux2");
}

}  // namespace
}  // namespace octet::test
