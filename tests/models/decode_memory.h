// What decoding takes of a backend's memory, of a VAE with random weights.
#pragma once

#include "models/flux2_vae/vae.h"
#include "weights/random_weights.h"

namespace octet::test {

struct DecodingUse {
  uint64_t weights = 0;        // bytes
  uint64_t peak = 0;           // beside these
  uint64_t reserved_peak = 0;  // with these, as the driver counts it; 0 where unknown
};

// height and width of the latent.
inline DecodingUse decode_randomly(Backend& backend, const flux2_vae::VaeConfig& config,
                                   int64_t height, int64_t width, DType dtype) {
  nn::Context ctx{backend, dtype};
  const uint64_t before = backend.memory().used;
  flux2_vae::VaeDecoder vae;
  vae.config = config;
  weights::RandomWeights weights(backend, {.dtype = dtype});
  flux2_vae::visit_weights(vae, weights);
  DecodingUse use;
  use.weights = backend.memory().used - before;
  backend.reset_peak();
  const std::vector<float> zeros(static_cast<size_t>(height * width * config.latent_channels));
  const nn::Matrix latent =
      nn::upload_matrix(ctx, zeros.data(), height * width, config.latent_channels);
  flux2_vae::decode(ctx, vae, latent, height, width);
  backend.synchronize();
  use.peak = backend.memory().peak - before - use.weights;
  use.reserved_peak = backend.memory().reserved_peak;
  return use;
}

}  // namespace octet::test
