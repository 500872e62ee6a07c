#include "models/ideogram4/dit_source.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "formats/json.h"
#include "formats/json_value.h"
#include "formats/text.h"
#include "models/config_fields.h"

namespace octet::ideogram4 {
namespace {

namespace fs = std::filesystem;

// Prefixes of the names, by who wrote the file: those of one network first.
constexpr std::string_view kConditional[] = {"conditional.", "cond.", "conditional_transformer."};
constexpr std::string_view kUnconditional[] = {"unconditional.", "uncond.",
                                               "unconditional_transformer."};
constexpr std::string_view kEither[] = {"", "model.diffusion_model.", "diffusion_model.",
                                        "transformer."};
// Other parts of a model that ComfyUI saves in one file with its transformer.
constexpr std::string_view kOtherParts[] = {"first_stage_model.", "cond_stage_model.",
                                            "text_encoders.", "vae."};

// Names that any file of a transformer has at least one of, also one without norms.
constexpr std::string_view kMarks[] = {"embed_image_indicator.", "layers.0.", "input_proj."};

std::span<const std::string_view> prefixes_of(bool conditional) {
  return conditional ? std::span(kConditional) : std::span(kUnconditional);
}

bool starts_with_any(std::string_view name, std::span<const std::string_view> prefixes) {
  return std::ranges::any_of(prefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

bool has_prefix(const Checkpoint& checkpoint, std::string_view prefix) {
  return std::ranges::any_of(kMarks, [&](std::string_view mark) {
    return checkpoint.has_prefix(std::string(prefix) + std::string(mark));
  });
}

std::optional<std::string> find_prefix(const Checkpoint& checkpoint, bool conditional) {
  for (const auto candidates :
       {prefixes_of(conditional), std::span<const std::string_view>(kEither)}) {
    for (const std::string_view prefix : candidates) {
      if (has_prefix(checkpoint, prefix)) return std::string(prefix);
    }
  }
  return std::nullopt;
}

std::string prefix_in(const Checkpoint& checkpoint, bool conditional) {
  const auto prefix = find_prefix(checkpoint, conditional);
  check(prefix.has_value(),
        "{}: has no tensors of {} network of Ideogram 4, such as \"layers.0.attention.qkv.weight\" "
        "with or without a known prefix",
        checkpoint.path(), conditional ? "the conditional" : "the unconditional");
  return *prefix;
}

// That of the folder; next to a file, one that names this architecture: other parts may be there.
std::string config_in(const std::string& path) {
  const std::string file = models::find_config(path);
  std::error_code ignored;
  if (file.empty() || fs::is_directory(path, ignored)) return file;
  try {
    const nlohmann::json root = read_json_file(file);
    const bool is_ours = root.is_object() && root.contains("_class_name") &&
                         root["_class_name"] == "Ideogram4Transformer2DModel";
    return is_ours ? file : "";
  } catch (const Error&) {
    return "";
  }
}

// Extent `axis` of the first of these tensors that is there with this rank; 0 without.
int64_t extent(const weights::WeightSource& source, std::initializer_list<const char*> names,
               size_t rank, size_t axis) {
  for (const char* name : names) {
    const TensorInfo* info = source.find(name);
    if (info != nullptr && info->shape.size() == rank) return info->shape[axis];
  }
  return 0;
}

// The FFN's rows. NF4 packs a matrix into one column of bytes, two weights in each, whose rows say
// nothing.
int64_t ffn_of_shapes(const weights::WeightSource& source, int64_t hidden) {
  const TensorInfo* info = source.find("layers.0.feed_forward.w1.weight");
  const bool packed = info != nullptr && info->dtype == DType::u8 && info->shape.size() == 2 &&
                      info->shape[1] == 1 && hidden > 1;
  if (packed) return info->shape[0] / (hidden / 2);
  return extent(source, {"layers.0.feed_forward.w1.weight", "layers.0.feed_forward.w1.wq"}, 2, 0);
}

// Rotary frequencies and eps leave no trace in a file: they are the published ones.
DitConfig dit_config_of_shapes(const weights::WeightSource& source) {
  const int64_t hidden = extent(source,
                                {"embed_image_indicator.weight", "layers.0.attention.o.weight",
                                 "layers.0.attention.to_out.0.weight", "layers.0.attention.o.wq"},
                                2, 1);
  DitConfig config;
  const auto take = [&](int64_t& into, const char* what, int64_t value) {
    check(value > 0,
          "{}: {} of the network cannot be derived from the shapes of its tensors; put its "
          "config.json next to it, or give a folder that has one as `base`",
          source.path(), what);
    into = value;
  };
  take(config.head_dim, "the head size",
       extent(source, {"layers.0.attention.norm_q.weight"}, 1, 0));
  take(config.heads, "the number of heads", hidden / config.head_dim);
  take(config.latent_channels, "the number of latent channels",
       extent(source, {"final_layer.linear.bias"}, 1, 0));
  take(config.modulation, "the conditioning size", extent(source, {"adaln_proj.bias"}, 1, 0));
  take(config.ffn, "the FFN's size", ffn_of_shapes(source, hidden));
  if (const int64_t features = extent(source, {"llm_cond_norm.weight"}, 1, 0)) {
    config.text_features = features;
  }
  config.layers = 0;
  while (source.find("layers." + std::to_string(config.layers) + ".attention.norm_q.weight")) {
    ++config.layers;
  }
  check(config.heads * config.head_dim == hidden, "{}: {} channels are not whole heads of {}",
        source.path(), hidden, config.head_dim);
  // Shapes may say anything; the limits of a config.json are theirs, too.
  return parse_dit_config(nlohmann::json::parse(config_text(config)), source.path());
}

}  // namespace

bool has_branch(const std::string& path, bool conditional) {
  const Checkpoint checkpoint(path);
  const auto of_branch = prefixes_of(conditional);
  return std::ranges::any_of(
      of_branch, [&](std::string_view prefix) { return has_prefix(checkpoint, prefix); });
}

std::optional<bool> noted_branch(const std::string& path) try {
  const Checkpoint checkpoint(path);
  const auto entry = checkpoint.metadata().find(std::string(weights::kQuantizationEntry));
  if (entry == checkpoint.metadata().end()) return std::nullopt;
  const auto branches = nlohmann::json::parse(entry->second).at("protected");
  const bool conditional = branches.contains("conditional");
  if (conditional == branches.contains("unconditional")) return std::nullopt;
  return conditional;
} catch (const std::exception&) {
  return std::nullopt;  // whoever opens it next says why
}

bool is_dit(const std::string& path) {
  try {
    const Checkpoint checkpoint(path);
    return find_prefix(checkpoint, true).has_value() || find_prefix(checkpoint, false).has_value();
  } catch (const std::exception&) {
    return false;  // whoever opens it next says why
  }
}

bool is_ignored(std::string_view name, bool conditional) {
  // Files of the unconditional branch have the text's weights, too, and never use them.
  if (!conditional && name.starts_with("llm_cond_")) return true;
  if (starts_with_any(name, prefixes_of(!conditional)) || starts_with_any(name, kOtherParts)) {
    return true;
  }
  return name == "rotary_emb.inv_freq" || name == "scaled_fp8";
}

std::string config_text(const DitConfig& config) {
  // The shortest digits that give this float, not those of the double that it would become.
  const double eps = std::stod(fmt::format("{}", config.norm_eps));
  return nlohmann::json{{"_class_name", "Ideogram4Transformer2DModel"},
                        {"in_channels", config.latent_channels},
                        {"num_layers", config.layers},
                        {"num_attention_heads", config.heads},
                        {"attention_head_dim", config.head_dim},
                        {"intermediate_size", config.ffn},
                        {"adaln_dim", config.modulation},
                        {"llm_features_dim", config.text_features},
                        {"rope_theta", config.rope_theta},
                        {"norm_eps", eps},
                        {"mrope_section", config.mrope_section}}
      .dump();
}

DitSource open_dit(const PartFiles& files, bool conditional) {
  DitSource opened;
  const auto checkpoint = std::make_shared<const Checkpoint>(files.path);
  opened.weights.add(checkpoint, prefix_in(*checkpoint, conditional));
  if (!files.base.empty()) {
    const auto base = std::make_shared<const Checkpoint>(files.base);
    opened.weights.add_base(base, prefix_in(*base, conditional));
  }
  const auto& metadata = checkpoint->metadata();
  auto entry =
      metadata.find(weights::config_entry_of(conditional ? "conditional" : "unconditional"));
  if (entry == metadata.end()) entry = metadata.find(std::string(weights::kConfigEntry));
  if (const std::string file = config_in(files.path); !file.empty()) {
    opened.config = read_dit_config(file);
  } else if (entry != metadata.end()) {
    const std::string where = checkpoint->path() + ": metadata " + entry->first;
    opened.config = parse_dit_config(parse_json(entry->second, where), where);
  } else if (const std::string of_base = files.base.empty() ? "" : config_in(files.base);
             !of_base.empty()) {
    opened.config = read_dit_config(of_base);
  } else {
    opened.config = dit_config_of_shapes(opened.weights);
  }
  return opened;
}

}  // namespace octet::ideogram4
