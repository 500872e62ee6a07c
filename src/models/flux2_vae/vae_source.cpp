#include "models/flux2_vae/vae_source.h"

#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "formats/json_value.h"
#include "models/config_fields.h"

namespace octet::flux2_vae {
namespace {

using Replacements = std::vector<std::pair<std::string, std::string>>;

// Which words of diffusers' names are others in those of FLUX.2's authors, who count the levels
// from the finest.
Replacements words_of_authors(const Checkpoint& checkpoint, size_t levels) {
  Replacements words = {{"decoder.mid_block.resnets.0.", "decoder.mid.block_1."},
                        {"decoder.mid_block.resnets.1.", "decoder.mid.block_2."},
                        {"decoder.mid_block.attentions.0.group_norm.", "decoder.mid.attn_1.norm."},
                        {"decoder.mid_block.attentions.0.to_out.0", "decoder.mid.attn_1.proj_out"},
                        {"decoder.mid_block.attentions.0.to_", "decoder.mid.attn_1."},
                        {"decoder.conv_norm_out.", "decoder.norm_out."},
                        {".resnets.", ".block."},
                        {".upsamplers.0.", ".upsample."},
                        {".conv_shortcut.", ".nin_shortcut."}};
  for (size_t i = 0; i < levels; ++i) {
    words.emplace_back("decoder.up_blocks." + std::to_string(i) + ".",
                       "decoder.up." + std::to_string(levels - 1 - i) + ".");
  }
  if (checkpoint.find("decoder.post_quant_conv.weight") != nullptr) {
    words.emplace_back("post_quant_conv.", "decoder.post_quant_conv.");
  }
  return words;
}

bool has_names_of_authors(const Checkpoint& checkpoint) {
  return checkpoint.find("decoder.mid.block_1.conv1.weight") != nullptr;
}

std::string replaced(std::string name, const Replacements& words) {
  for (const auto& [from, to] : words) {
    if (const size_t at = name.find(from); at != name.npos) name.replace(at, from.size(), to);
  }
  return name;
}

// The number of groups leaves no trace in a file: with the published one goes the rest of its
// structure, which the list of weights checks.
VaeConfig vae_config_of_shapes(const weights::WeightSource& source) {
  const auto extent = [&](const std::string& name, size_t axis) {
    const TensorInfo* info = source.find(name);
    check(info != nullptr && info->shape.size() == 4,
          "{}: tensor \"{}\" is {}, expected four extents; it is not the decoder of a FLUX.2 VAE, "
          "or needs its config.json next to it",
          source.path(), source.full_name(name),
          info == nullptr ? "missing" : to_string(info->shape));
    return info->shape[axis];
  };
  std::vector<int64_t> channels(VaeConfig().channels.size());
  for (size_t i = 0; i < channels.size(); ++i) {
    const std::string name = "decoder.up_blocks." + std::to_string(i) + ".resnets.0.conv1.weight";
    channels[channels.size() - 1 - i] = extent(name, 0);
  }
  // Shapes may say anything; the limits of a config.json are theirs, too.
  return parse_vae_config(
      {{"latent_channels", extent("decoder.conv_in.weight", 1)}, {"block_out_channels", channels}},
      source.path());
}

}  // namespace

VaeSource open_vae(const std::string& path) {
  const std::string config = models::find_config(path);
  VaeSource opened;
  if (!config.empty()) opened.config = read_vae_config(config);
  const auto checkpoint = std::make_shared<const Checkpoint>(path);
  weights::WeightSource::Rename rename;
  if (has_names_of_authors(*checkpoint)) {
    rename = [words = words_of_authors(*checkpoint, opened.config.channels.size())](
                 const std::string& name) { return replaced(name, words); };
  }
  opened.weights.add(checkpoint, "", std::move(rename));
  if (config.empty()) opened.config = vae_config_of_shapes(opened.weights);
  return opened;
}

}  // namespace octet::flux2_vae
