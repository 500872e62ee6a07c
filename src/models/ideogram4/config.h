// The numbers that describe a transformer of Ideogram 4: transformer/config.json. An absent key has
// the value of the published model.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace octet::ideogram4 {

struct DitConfig {
  int64_t latent_channels = 128;  // of a token: four pixels of the VAE's latent
  int64_t layers = 34;
  int64_t heads = 18;
  int64_t head_dim = 256;
  int64_t ffn = 12288;
  int64_t modulation = 512;       // channels of the conditioning vector
  int64_t text_features = 53248;  // of the 13 tapped layers of the text encoder
  double rope_theta = 5e6;
  std::array<int64_t, 3> mrope_section = {24, 20, 20};
  float norm_eps = 1e-5f;

  int64_t hidden() const { return heads * head_dim; }
  bool operator==(const DitConfig&) const = default;
};

DitConfig read_dit_config(const std::string& path);
// The same from its content; `path` begins messages.
DitConfig parse_dit_config(const nlohmann::json& root, const std::string& path);

}  // namespace octet::ideogram4
