// What decoding takes of a backend's memory, of a VAE with random weights.
#pragma once

#include <random>

#include "models/flux2_vae/vae.h"
#include "weights/random_weights.h"

namespace octet::test {

struct DecodingUse {
  uint64_t weights = 0;        // bytes
  uint64_t peak = 0;           // beside these
  uint64_t reserved_peak = 0;  // with these, as the driver counts it; 0 where unknown
  UnsetVector<float> image = {};
};

// height and width of the latent; `bound`: nn::Context::image_bytes.
inline DecodingUse decode_randomly(Backend& backend, const flux2_vae::VaeConfig& config,
                                   int64_t height, int64_t width, DType dtype, uint64_t bound = 0) {
  nn::Context ctx{.backend = backend, .dtype = dtype, .image_bytes = bound};
  const uint64_t before = backend.memory().used;
  flux2_vae::VaeDecoder vae;
  vae.config = config;
  weights::RandomWeights weights(backend, {.dtype = dtype});
  flux2_vae::visit_weights(vae, weights);
  DecodingUse use;
  use.weights = backend.memory().used - before;
  backend.reset_peak();
  std::vector<float> noise(static_cast<size_t>(height * width * config.latent_channels));
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (float& value : noise) value = normal(random);
  const nn::Matrix latent =
      nn::upload_matrix(ctx, noise.data(), height * width, config.latent_channels);
  use.image = flux2_vae::decode(ctx, vae, latent, height, width);
  backend.synchronize();
  use.peak = backend.memory().peak - before - use.weights;
  use.reserved_peak = backend.memory().reserved_peak;
  return use;
}

}  // namespace octet::test
