// The numbers that describe a model, read from the config.json files of a Hugging Face folder and
// checked: what they say decides how much memory is taken. A key that is absent has the value of
// the published model, but for the text encoder's heads, which follow from one another, and its
// rope_theta, which must be there.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace octet::ideogram4 {

// transformer/config.json
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

// text_encoder/config.json, its text_config where it has one
struct TextConfig {
  int64_t hidden = 4096;
  int64_t layers = 36;
  int64_t heads = 32;
  int64_t kv_heads = 8;
  int64_t head_dim = 128;
  int64_t ffn = 12288;
  int64_t vocabulary = 151936;
  double rope_theta = 5e6;
  float norm_eps = 1e-6f;
};

// vae/config.json
struct VaeConfig {
  int64_t latent_channels = 32;
  std::vector<int64_t> channels = {128, 256, 512, 512};  // of the decoder, the finest first
  int64_t resnets = 3;                                   // of each up block
  int64_t groups = 32;
  bool mid_attention = true;
  bool post_quant_conv = true;
  float statistics_eps = 1e-4f;  // beside the stored variance of latents

  // Pixels of the image to one of the latent, along a side.
  int64_t factor() const { return int64_t{1} << (channels.size() - 1); }
};

// Pixels of the latent to one token, along a side.
inline constexpr int64_t kPatch = 2;

DitConfig read_dit_config(const std::string& path);
// The same from its content; `path` begins messages.
DitConfig parse_dit_config(const nlohmann::json& root, const std::string& path);
TextConfig read_text_config(const std::string& path);
VaeConfig read_vae_config(const std::string& path);
VaeConfig parse_vae_config(const nlohmann::json& root, const std::string& path);

// The config.json in the folder `path`, or beside the file `path`; empty when there is none.
std::string find_config(const std::string& path);

}  // namespace octet::ideogram4
