#include "models/ideogram4/config.h"

#include "models/config_fields.h"
#include "models/flux2_vae/config.h"

namespace octet::ideogram4 {

DitConfig read_dit_config(const std::string& path) {
  return parse_dit_config(read_json_file(path), path);
}

DitConfig parse_dit_config(const nlohmann::json& root, const std::string& path) {
  const models::ConfigFields fields(path, root);
  fields.expect("_class_name", "Ideogram4Transformer2DModel");
  const DitConfig published;
  DitConfig config;
  config.latent_channels = fields.integer("in_channels", published.latent_channels, 4, 65536);
  config.layers = fields.integer("num_layers", published.layers, 1, models::kMostLayers);
  config.heads = fields.integer("num_attention_heads", published.heads, 1, 4096);
  config.head_dim = fields.integer("attention_head_dim", published.head_dim, 2, 4096);
  config.ffn = fields.integer("intermediate_size", published.ffn, 1, models::kMostChannels);
  config.modulation = fields.integer("adaln_dim", published.modulation, 1, models::kMostChannels);
  config.text_features =
      fields.integer("llm_features_dim", published.text_features, 1, int64_t{1} << 20);
  config.rope_theta = fields.number("rope_theta", published.rope_theta, 1, 1e12);
  config.norm_eps = static_cast<float>(fields.number("norm_eps", published.norm_eps, 0, 1));
  const auto section = fields.integers("mrope_section", {24, 20, 20}, 3, 3, 0, 4096);
  config.mrope_section = {section[0], section[1], section[2]};
  check(config.head_dim % 2 == 0, "{}: attention_head_dim is {}, expected an even number", path,
        config.head_dim);
  check(
      config.hidden() >= 4 && config.hidden() % 2 == 0 && config.hidden() <= models::kMostChannels,
      "{}: {} heads of {} channels are {}, expected an even number from 4 to {}", path,
      config.heads, config.head_dim, config.hidden(), models::kMostChannels);
  check(config.latent_channels % (flux2_vae::kPatch * flux2_vae::kPatch) == 0,
        "{}: in_channels is {}, expected a multiple of {}", path, config.latent_channels,
        flux2_vae::kPatch * flux2_vae::kPatch);
  for (const int axis : {1, 2}) {
    const auto end = config.mrope_section[static_cast<size_t>(axis)] * 3;
    check(end <= config.head_dim / 2 + 2, "{}: mrope_section {} reaches frequency {} of {}", path,
          config.mrope_section[static_cast<size_t>(axis)], end, config.head_dim / 2);
  }
  return config;
}

}  // namespace octet::ideogram4
