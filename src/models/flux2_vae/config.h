// The numbers that describe a FLUX.2 VAE: vae/config.json. An absent key has the value of the
// published model.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace octet::flux2_vae {

struct VaeConfig {
  int64_t latent_channels = 32;
  std::vector<int64_t> channels = {128, 256, 512, 512};  // of the decoder, the finest first
  int64_t resnets = 3;                                   // of each up block
  int64_t groups = 32;
  bool mid_attention = true;
  bool post_quant_conv = true;
  float statistics_eps = 1e-4f;  // added to the stored variance of latents

  // Pixels of the image to one of the latent, along a side.
  int64_t factor() const { return int64_t{1} << (channels.size() - 1); }
};

// Pixels of the latent to one token, along a side.
inline constexpr int64_t kPatch = 2;

VaeConfig read_vae_config(const std::string& path);
// The same from its content; `path` begins messages.
VaeConfig parse_vae_config(const nlohmann::json& root, const std::string& path);

}  // namespace octet::flux2_vae
