// Text towers of a few random layers in a folder, and how far their features are apart.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "engine/part_store.h"
#include "formats/temporary_folder.h"
#include "measure/compare/difference.h"
#include "models/qwen3/text_encoder.h"
#include "weights/random_weights.h"
#include "weights/written_tensors.h"

namespace octet::test {

struct SmallTower {
  static constexpr int64_t kTaps[] = {1, 3};
  static constexpr int64_t kVocabulary = 300;

  static qwen3::TextConfig config() {
    return {.hidden = 256,
            .layers = 4,
            .heads = 4,
            .kv_heads = 2,
            .head_dim = 64,
            .ffn = 768,
            .vocabulary = kVocabulary,
            .rope_theta = 1e4};
  }
  static std::vector<int32_t> tokens() {
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 40; ++i) ids.push_back(i * 7 % static_cast<int32_t>(kVocabulary));
    return ids;
  }
};

// Writes the tensors of a tower. With `outlier` above 1, a few channels behind each norm are so
// many times as large, and the linears that read them have columns as many times smaller: the same
// function, and hard to quantize by rows.
class TowerWriter : public nn::WeightVisitor {
 public:
  explicit TowerWriter(float outlier) : outlier_(outlier) {}

  void linear(nn::Linear&, const nn::LinearSpec& spec) override {
    const bool behind_norm = spec.layer.ends_with("qkv") || spec.layer.ends_with("gate+up");
    for (const auto& part : spec.layouts.front()) {
      add({part.name + ".weight", {part.rows, spec.k}, spec.k},
          [&](int64_t at) { return behind_norm && is_outlier(at % spec.k) ? 1 / outlier_ : 1; });
    }
  }
  void conv(nn::Conv&, const nn::ConvSpec&) override {}
  void vector(nn::Vector&, const std::string& name, int64_t length) override {
    const bool before_linears = name.ends_with("layernorm.weight");
    add({name, {length}},
        [&](int64_t at) { return before_linears && is_outlier(at) ? outlier_ : 1; });
  }
  void table(nn::Table&, const std::string& name, int64_t rows, int64_t columns) override {
    add({name, {rows, columns}, 1}, [](int64_t) { return 1.0f; });
  }

  const std::vector<WrittenTensor>& tensors() const { return tensors_; }

 private:
  static bool is_outlier(int64_t channel) { return channel == 7 || channel == 130; }

  template <class Factor>
  void add(const weights::RandomTensor& tensor, const Factor& factor) {
    int64_t count = 1;
    for (const int64_t extent : tensor.shape) count *= extent;
    std::vector<float> values(static_cast<size_t>(count));
    weights::fill_random(5, tensor, weights::default_spread(tensor), 0, values);
    for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] *= factor(i);
    tensors_.push_back(written(tensor.name, tensor.shape, values));
  }

  float outlier_;
  std::vector<WrittenTensor> tensors_;
};

// Its folder.
inline std::string write_tower(const TemporaryFolder& folder, float outlier) {
  const qwen3::TextConfig config = SmallTower::config();
  TowerWriter writer(outlier);
  nn::Table embedding;
  qwen3::visit_embedding(embedding, config, writer);
  for (int64_t i = 0; i < config.layers; ++i) {
    qwen3::TextLayer layer;
    qwen3::visit_layer(layer, config, i, writer);
  }
  write_tensors(folder.file("model.safetensors"), writer.tensors());
  folder.write("config.json",
               fmt::format(R"({{"hidden_size": {}, "num_hidden_layers": {},
      "num_attention_heads": {}, "num_key_value_heads": {}, "head_dim": {},
      "intermediate_size": {}, "vocab_size": {}, "rope_theta": {}}})",
                           config.hidden, config.layers, config.heads, config.kv_heads,
                           config.head_dim, config.ffn, config.vocabulary, config.rope_theta));
  return folder.path();
}

// Features of a tower that is loaded by these rules.
inline UnsetVector<float> features_by(Backend& backend, const std::string& path,
                                      std::span<const int64_t> taps,
                                      const std::vector<int32_t>& tokens,
                                      const engine::LoadRules& rules,
                                      Residency where = Residency::device) {
  nn::Context ctx{backend, DType::bf16};
  qwen3::TextEncoder encoder(path, taps);
  engine::PartStore store(encoder, ctx, where);
  store.rules() = rules;
  store.load();
  return encoder.encode(ctx, tokens);
}

// The cosine of each token's features with those of a reference.
struct TokenCosines {
  double mean = 0, worst = 1;
};

inline TokenCosines cosines_of(std::span<const float> reference, std::span<const float> features,
                               size_t tokens) {
  TokenCosines made;
  const size_t channels = reference.size() / tokens;
  for (size_t i = 0; i < tokens; ++i) {
    const double cosine = measure::difference(reference.subspan(i * channels, channels),
                                              features.subspan(i * channels, channels))
                              .cosine;
    made.mean += cosine / static_cast<double>(tokens);
    made.worst = std::min(made.worst, cosine);
  }
  return made;
}

}  // namespace octet::test
