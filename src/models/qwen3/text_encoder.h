// The text tower of Qwen3-VL: a caption's tokens become features, the outputs of some of its
// layers.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "models/part.h"
#include "models/qwen3/config.h"
#include "models/qwen3/text_source.h"
#include "nn/linear.h"

namespace octet::qwen3 {

struct TextLayer {
  nn::Vector input_norm, attention_norm;  // [H], before attention and before the FFN
  nn::Linear qkv;                         // q [heads * hd], k and v [kv_heads * hd], of H
  nn::Vector norm_q, norm_k;              // [hd]
  nn::Linear attention_out;               // [H, heads * hd]
  nn::Linear gate_up;                     // [2 F, H]
  nn::Linear down;                        // [H, F]
};

// The one list of its weights, in two parts; layer i is visited into `layer`.
void visit_embedding(nn::Table& embedding, const TextConfig& config, nn::WeightVisitor& visit);
void visit_layer(TextLayer& layer, const TextConfig& config, int64_t i, nn::WeightVisitor& visit);

class TextEncoder : public models::TextEncoder {
 public:
  // `path` as open_text_encoder() takes it; `taps`: the layers whose output is kept, ascending.
  // Later layers do not run. Checks that all weights are there.
  TextEncoder(const std::string& path, std::span<const int64_t> taps);

  // Without files: for benchmarks and tests.
  TextEncoder(const TextConfig& config, std::span<const int64_t> taps);

  const TextConfig& config() const { return config_; }

  std::string_view name() const override { return "text_encoder"; }
  int64_t unit_count() const override { return 1 + run_layers(); }  // the embedding, then layers
  void visit(int64_t unit, nn::WeightVisitor& visitor) override;
  void release(int64_t unit) override;
  bool is_ignored(std::string_view name) const override;

  // Channel c of tap k is at c * taps + k.
  int64_t feature_count() const override { return std::ssize(taps_) * config_.hidden; }
  UnsetVector<float> encode(nn::Context& ctx, const std::vector<int32_t>& tokens,
                            const std::function<void(int64_t)>& progress = {}) const override;

 private:
  TextEncoder(TextSource source, std::span<const int64_t> taps);
  int64_t run_layers() const { return taps_.back() + 1; }
  // From its files. On a device the table would be the largest unit by far, for the few rows that a
  // prompt has.
  bool reads_embedding() const { return !source().layers().empty(); }
  void embed(nn::Context& ctx, const std::vector<int32_t>& tokens, const nn::Matrix& into) const;

  TextConfig config_;
  std::vector<int64_t> taps_;
  nn::Table embedding_;
  std::vector<TextLayer> layers_;
};

}  // namespace octet::qwen3
