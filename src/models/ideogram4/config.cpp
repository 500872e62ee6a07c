#include "models/ideogram4/config.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/regular_file.h"
#include "formats/json.h"
#include "formats/text.h"

namespace octet::ideogram4 {
namespace {

using Json = nlohmann::json;

// One object of a configuration file.
class Fields {
 public:
  Fields(const std::string& path, const Json& object) : path_(path), object_(object) {
    check(object_.is_object(), "{}: is {}, expected an object", path_, describe(object_));
  }

  // The value of `key`, or null when it is absent or null.
  const Json* find(const char* key) const {
    const auto at = object_.find(key);
    return at == object_.end() || at->is_null() ? nullptr : &*at;
  }

  int64_t integer(const char* key, int64_t absent, int64_t least, int64_t most) const {
    const Json* value = find(key);
    return value == nullptr ? absent : integer_of(*value, key, least, most);
  }

  double number(const char* key, double absent, double least, double most) const {
    const Json* value = find(key);
    if (value == nullptr) return absent;
    check(value->is_number() && *value >= least && *value <= most,
          "{}: {} is {}, expected a number from {} to {}", path_, key, describe(*value), least,
          most);
    return value->get<double>();
  }

  bool boolean(const char* key, bool absent) const {
    const Json* value = find(key);
    if (value == nullptr) return absent;
    check(value->is_boolean(), "{}: {} is {}, expected true or false", path_, key,
          describe(*value));
    return value->get<bool>();
  }

  std::vector<int64_t> integers(const char* key, std::vector<int64_t> absent, size_t least_count,
                                size_t most_count, int64_t least, int64_t most) const {
    const Json* value = find(key);
    if (value == nullptr) return absent;
    check(value->is_array() && value->size() >= least_count && value->size() <= most_count,
          "{}: {} is {}, expected an array of {} to {} integers", path_, key, describe(*value),
          least_count, most_count);
    std::vector<int64_t> numbers;
    for (const Json& element : *value) numbers.push_back(integer_of(element, key, least, most));
    return numbers;
  }

  // A key that must have this value where it is there: any other is a model that is not this one.
  void expect(const char* key, const Json& wanted) const {
    const Json* value = find(key);
    check(value == nullptr || is_same(*value, wanted), "{}: {} is {}, expected {}", path_, key,
          value == nullptr ? "" : describe(*value), describe(wanted));
  }

 private:
  int64_t integer_of(const Json& value, const char* key, int64_t least, int64_t most) const {
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX) &&
                      value.get<int64_t>() >= least && value.get<int64_t>() <= most;
    check(fits, "{}: {} is {}, expected an integer from {} to {}", path_, key, describe(value),
          least, most);
    return value.get<int64_t>();
  }

  std::string path_;
  const Json& object_;
};

constexpr int64_t kMostLayers = 4096;
constexpr int64_t kMostChannels = int64_t{1} << 17;  // the longest row that INT8 sums allow

}  // namespace

DitConfig read_dit_config(const std::string& path) {
  return parse_dit_config(read_json_file(path), path);
}

DitConfig parse_dit_config(const Json& root, const std::string& path) {
  const Fields fields(path, root);
  fields.expect("_class_name", "Ideogram4Transformer2DModel");
  const DitConfig published;
  DitConfig config;
  config.latent_channels = fields.integer("in_channels", published.latent_channels, 4, 65536);
  config.layers = fields.integer("num_layers", published.layers, 1, kMostLayers);
  config.heads = fields.integer("num_attention_heads", published.heads, 1, 4096);
  config.head_dim = fields.integer("attention_head_dim", published.head_dim, 2, 4096);
  config.ffn = fields.integer("intermediate_size", published.ffn, 1, kMostChannels);
  config.modulation = fields.integer("adaln_dim", published.modulation, 1, kMostChannels);
  config.text_features =
      fields.integer("llm_features_dim", published.text_features, 1, int64_t{1} << 20);
  config.rope_theta = fields.number("rope_theta", published.rope_theta, 1, 1e12);
  config.norm_eps = static_cast<float>(fields.number("norm_eps", published.norm_eps, 0, 1));
  const auto section = fields.integers("mrope_section", {24, 20, 20}, 3, 3, 0, 4096);
  config.mrope_section = {section[0], section[1], section[2]};
  check(config.head_dim % 2 == 0, "{}: attention_head_dim is {}, expected an even number", path,
        config.head_dim);
  check(config.hidden() >= 4 && config.hidden() % 2 == 0 && config.hidden() <= kMostChannels,
        "{}: {} heads of {} channels are {}, expected an even number from 4 to {}", path,
        config.heads, config.head_dim, config.hidden(), kMostChannels);
  check(config.latent_channels % (kPatch * kPatch) == 0,
        "{}: in_channels is {}, expected a multiple of {}", path, config.latent_channels,
        kPatch * kPatch);
  for (const int axis : {1, 2}) {
    const auto end = config.mrope_section[static_cast<size_t>(axis)] * 3;
    check(end <= config.head_dim / 2 + 2, "{}: mrope_section {} reaches frequency {} of {}", path,
          config.mrope_section[static_cast<size_t>(axis)], end, config.head_dim / 2);
  }
  return config;
}

TextConfig read_text_config(const std::string& path) {
  const Json root = read_json_file(path);
  const Fields whole(path, root);
  const Json* nested = whole.find("text_config");
  const Fields fields = nested == nullptr ? whole : Fields(path + ": text_config", *nested);
  fields.expect("hidden_act", "silu");
  fields.expect("attention_bias", false);
  const TextConfig published;
  TextConfig config;
  config.hidden = fields.integer("hidden_size", published.hidden, 1, kMostChannels);
  config.layers = fields.integer("num_hidden_layers", published.layers, 1, kMostLayers);
  config.heads = fields.integer("num_attention_heads", published.heads, 1, 4096);
  config.kv_heads = fields.integer("num_key_value_heads", config.heads, 1, 4096);
  config.head_dim = fields.integer("head_dim", config.hidden / config.heads, 2, 4096);
  config.ffn = fields.integer("intermediate_size", published.ffn, 1, kMostChannels);
  config.vocabulary =
      fields.integer("vocab_size", published.vocabulary, 1, std::numeric_limits<int32_t>::max());
  config.norm_eps = static_cast<float>(fields.number("rms_norm_eps", published.norm_eps, 0, 1));
  // Qwen3-8B has the same shapes and another base, so that an absent one is not guessed.
  config.rope_theta = fields.number("rope_theta", 0, 1, 1e12);
  for (const char* key : {"rope_parameters", "rope_scaling"}) {  // by newer and older writers
    const Json* rope = fields.find(key);
    if (rope == nullptr) continue;
    const Fields parameters(path + ": " + key, *rope);
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

VaeConfig read_vae_config(const std::string& path) {
  return parse_vae_config(read_json_file(path), path);
}

VaeConfig parse_vae_config(const Json& root, const std::string& path) {
  const Fields fields(path, root);
  fields.expect("_class_name", "AutoencoderKLFlux2");
  fields.expect("act_fn", "silu");
  fields.expect("out_channels", 3);
  fields.expect("patch_size", Json::array({kPatch, kPatch}));
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
  if (const Json* blocks = fields.find("up_block_types")) {
    check(blocks->is_array() && blocks->size() == channels.size(),
          "{}: up_block_types is {}, expected an array of {}", path, describe(*blocks),
          channels.size());
    for (const Json& block : *blocks) {
      check(block == "UpDecoderBlock2D", "{}: up_block_types names {}, expected UpDecoderBlock2D",
            path, describe(block));
    }
  }
  return config;
}

std::string find_config(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path given(path);
  const bool is_folder = std::filesystem::is_directory(given, ignored);
  const std::string file = ((is_folder ? given : given.parent_path()) / "config.json").string();
  return is_file_there(file) ? file : "";
}

}  // namespace octet::ideogram4
