// A rough picture of a latent, for the time while it is made: one pixel for each token, by a linear
// map from its channels to red, green and blue.
//
// The map is not stored anywhere: it is fitted to the model's own decoder, by least squares over
// what that makes of some flat patches of random latents, once per loaded model.
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
  std::vector<uint8_t> rgb(std::span<const float> latent) const;
  const std::vector<float>& weights() const { return weights_; }

 private:
  std::vector<float> weights_;
};

}  // namespace octet::engine
