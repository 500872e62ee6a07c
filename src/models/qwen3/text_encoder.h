// The text tower of Qwen3-VL: a caption's tokens become features for the transformer.
//
// It runs once per caption, so its layers never meet in memory: each is loaded, used and released,
// and the whole takes little more than its largest part.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "models/qwen3/config.h"
#include "models/qwen3/text_source.h"
#include "nn/linear.h"
#include "weights/fingerprint.h"

namespace octet::qwen3 {

// Layers whose output is kept.
inline constexpr int64_t kTappedLayers[] = {0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 35};
inline constexpr int64_t kTaps = std::size(kTappedLayers);
// Layers that run: later ones, if there are any, give nothing.
inline constexpr int64_t kRunLayers = kTappedLayers[kTaps - 1] + 1;

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

class TextEncoder {
 public:
  // `path` as open_text_encoder() takes it. Checks that all weights are there; loads nothing.
  TextEncoder(const std::string& path);

  const TextConfig& config() const { return source_.config; }
  const weights::WeightSource& source() const { return source_.weights; }
  int64_t features() const { return kTaps * config().hidden; }

  // Features F32 [tokens, H * taps]: channel c of tap k at c * taps + k. `progress` is told the
  // layers done; may throw to stop.
  std::vector<float> encode(nn::Context& ctx, ThreadPool& pool, const std::vector<int32_t>& tokens,
                            const std::function<void(int64_t)>& progress = {});
  // Of the weights that the last encode() read.
  const weights::Fingerprint& fingerprint() const { return fingerprint_; }

 private:
  TextSource source_;
  weights::Fingerprint fingerprint_;
};

}  // namespace octet::qwen3
