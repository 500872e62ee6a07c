#include "models/qwen3/text_source.h"

#include <algorithm>

#include "base/error.h"
#include "models/config_fields.h"

namespace octet::qwen3 {
namespace {

// Prefixes of the names of the text tower, by who wrote the file.
std::string find_prefix(const Checkpoint& checkpoint) {
  constexpr const char* kPrefixes[] = {"language_model.", "model.language_model.", "model.", ""};
  for (const char* prefix : kPrefixes) {
    if (checkpoint.find(std::string(prefix) + "embed_tokens.weight") != nullptr) return prefix;
  }
  fail(
      "{}: tensor \"language_model.embed_tokens.weight\" is missing; expected the text tower of "
      "Qwen3-VL",
      checkpoint.path());
}

// Qwen3-8B has the same shapes and another rotary base, but no vision tower.
bool has_vision_tower(const Checkpoint& checkpoint) {
  return checkpoint.has_prefix("model.visual.") || checkpoint.has_prefix("visual.");
}

// The first extent, which packing along inputs leaves alone; 0 where the tensor is absent.
int64_t rows_of(const weights::WeightSource& source, const std::string& name) {
  const TensorInfo* info = source.find(name);
  return info == nullptr || info->shape.empty() ? 0 : info->shape.front();
}

// Rotary base and eps leave no trace in a file: only the published model's are known.
TextConfig text_config_of_shapes(const weights::WeightSource& source) {
  const TextConfig published;
  const auto expect = [&](const char* what, int64_t got, int64_t expected) {
    check(got == expected,
          "{}: {} is {}, and that of Qwen3-VL-8B is {}; the rotary base of another model cannot be "
          "told from its weights: put its config.json next to it",
          source.path(), what, got, expected);
  };
  int64_t layers = 0;
  while (source.find("layers." + std::to_string(layers) + ".input_layernorm.weight")) ++layers;
  expect("the number of layers", layers, published.layers);
  expect("the vocabulary", rows_of(source, "embed_tokens.weight"), published.vocabulary);
  const std::string first = "layers.0.";
  expect("the hidden size", rows_of(source, first + "input_layernorm.weight"), published.hidden);
  expect("the head size", rows_of(source, first + "self_attn.q_norm.weight"), published.head_dim);
  expect("the height of q_proj", rows_of(source, first + "self_attn.q_proj.weight"),
         published.heads * published.head_dim);
  expect("the height of k_proj", rows_of(source, first + "self_attn.k_proj.weight"),
         published.kv_heads * published.head_dim);
  expect("the FFN's size", rows_of(source, first + "mlp.gate_proj.weight"), published.ffn);
  check(has_vision_tower(*source.layers().front().checkpoint),
        "{}: has no vision tower, by which Qwen3-VL-8B is told from Qwen3-8B, whose rotary base is "
        "another; put its config.json next to it",
        source.path());
  return published;
}

}  // namespace

TextSource open_text_encoder(const std::string& path) {
  const std::string config = models::find_config(path);
  TextSource opened;
  // Before the weights: what a broken configuration says is plainer than what fits it.
  if (!config.empty()) opened.config = read_text_config(config);
  const auto checkpoint = std::make_shared<const Checkpoint>(path);
  opened.weights.add(checkpoint, find_prefix(*checkpoint));
  if (config.empty()) opened.config = text_config_of_shapes(opened.weights);
  opened.described_by = config.empty() ? checkpoint->path() : config;
  return opened;
}

}  // namespace octet::qwen3
