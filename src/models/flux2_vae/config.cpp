#include "models/flux2_vae/config.h"

#include "models/config_fields.h"

namespace octet::flux2_vae {

VaeConfig read_vae_config(const std::string& path) {
  return parse_vae_config(read_json_file(path), path);
}

VaeConfig parse_vae_config(const nlohmann::json& root, const std::string& path) {
  const models::ConfigFields fields(path, root);
  fields.expect("_class_name", "AutoencoderKLFlux2");
  fields.expect("act_fn", "silu");
  fields.expect("out_channels", 3);
  fields.expect("patch_size", nlohmann::json::array({kPatch, kPatch}));
  const VaeConfig published;
  VaeConfig config;
  config.latent_channels = fields.integer("latent_channels", published.latent_channels, 1, 16384);
  config.groups = fields.integer("norm_num_groups", published.groups, 1, 16384);
  config.resnets = 1 + fields.integer("layers_per_block", published.resnets - 1, 1, 64);
  config.mid_attention = fields.boolean("mid_block_add_attention", published.mid_attention);
  config.post_quant_conv = fields.boolean("use_post_quant_conv", published.post_quant_conv);
  config.statistics_eps =
      static_cast<float>(fields.number("batch_norm_eps", published.statistics_eps, 0, 1));
  const auto channels = fields.integers("block_out_channels", published.channels, 1, 6, 1, 16384);
  config.channels = fields.integers("decoder_block_out_channels", channels, channels.size(),
                                    channels.size(), 1, 16384);
  for (const int64_t width : config.channels) {
    check(width % config.groups == 0, "{}: {} channels do not divide into {} groups", path, width,
          config.groups);
  }
  if (const nlohmann::json* blocks = fields.find("up_block_types")) {
    check(blocks->is_array() && blocks->size() == channels.size(),
          "{}: up_block_types is {}, expected an array of {}", path, describe(*blocks),
          channels.size());
    for (const nlohmann::json& block : *blocks) {
      check(block == "UpDecoderBlock2D", "{}: up_block_types names {}, expected UpDecoderBlock2D",
            path, describe(block));
    }
  }
  return config;
}

}  // namespace octet::flux2_vae
