// A rough picture of a latent, shown while the picture is made: one pixel per token, by a linear
// map from its channels to red, green and blue.
//
// The map is not stored anywhere: it is fitted to the model's own decoder once per loaded model, by
// least squares over decoded flat patches of random latents.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/part.h"

namespace octet::engine {

class PreviewMap {
 public:
  // Decodes one small latent.
  PreviewMap(nn::Context& ctx, const models::Decoder& decoder);
  // [channels + 1][3]: weights, then the constant; for tests.
  explicit PreviewMap(std::vector<float> weights) : weights_(std::move(weights)) {}

  // latent [tokens, channels] -> RGB [tokens, 3]
  std::vector<uint8_t> rgb(std::span<const float> latent, ThreadPool* pool = nullptr) const;
  const std::vector<float>& weights() const { return weights_; }

 private:
  std::vector<float> weights_;
};

}  // namespace octet::engine
