#include "models/qwen3/config.h"

#include <limits>

#include "models/config_fields.h"

namespace octet::qwen3 {

TextConfig read_text_config(const std::string& path) {
  const nlohmann::json root = read_json_file(path);
  const models::ConfigFields whole(path, root);
  const nlohmann::json* nested = whole.find("text_config");
  const models::ConfigFields fields =
      nested == nullptr ? whole : models::ConfigFields(path + ": text_config", *nested);
  fields.expect("hidden_act", "silu");
  fields.expect("attention_bias", false);
  const TextConfig published;
  TextConfig config;
  config.hidden = fields.integer("hidden_size", published.hidden, 1, models::kMostChannels);
  config.layers = fields.integer("num_hidden_layers", published.layers, 1, models::kMostLayers);
  config.heads = fields.integer("num_attention_heads", published.heads, 1, 4096);
  config.kv_heads = fields.integer("num_key_value_heads", config.heads, 1, 4096);
  config.head_dim = fields.integer("head_dim", config.hidden / config.heads, 2, 4096);
  config.ffn = fields.integer("intermediate_size", published.ffn, 1, models::kMostChannels);
  config.vocabulary =
      fields.integer("vocab_size", published.vocabulary, 1, std::numeric_limits<int32_t>::max());
  config.norm_eps = static_cast<float>(fields.number("rms_norm_eps", published.norm_eps, 0, 1));
  // Qwen3-8B has the same shapes and another base, so that an absent one is not guessed.
  config.rope_theta = fields.number("rope_theta", 0, 1, 1e12);
  for (const char* key : {"rope_parameters", "rope_scaling"}) {  // by newer and older writers
    const nlohmann::json* rope = fields.find(key);
    if (rope == nullptr) continue;
    const models::ConfigFields parameters(path + ": " + key, *rope);
    parameters.expect("rope_type", "default");
    config.rope_theta = parameters.number("rope_theta", config.rope_theta, 1, 1e12);
  }
  check(config.rope_theta > 0, "{}: rope_theta is missing; for Qwen3-VL-8B it is 5000000", path);
  check(config.heads % config.kv_heads == 0,
        "{}: {} attention heads on {} key-value heads, expected a multiple", path, config.heads,
        config.kv_heads);
  // Where it is absent, it is a quotient that may also be 0.
  check(config.head_dim >= 2 && config.head_dim % 2 == 0,
        "{}: head_dim is {}, expected an even number of at least 2", path, config.head_dim);
  return config;
}

}  // namespace octet::qwen3
