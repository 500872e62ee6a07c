// The sizes and the weights of the demo model.
//
// All weights are random, but some are thinned out so that noise becomes soft shapes and not other
// noise. Of the transformers' hidden channels some carry the latent, some say that a token belongs
// to the image, and some hold the picture. The last layer pulls the latent towards the picture's
// channels, which only attention and FFN write to: they are fed with the tokens of the caption, and
// with the noise itself, averaged over neighbourhoods. The decoder blurs where it doubles.
#pragma once

#include <cstdint>
#include <string>

#include "models/flux2_vae/config.h"
#include "models/ideogram4/config.h"
#include "models/qwen3/config.h"

namespace octet::demo {

ideogram4::DitConfig demo_dit_config();
qwen3::TextConfig demo_text_config(int64_t vocabulary);
flux2_vae::VaeConfig demo_vae_config();

enum class DemoPart : uint8_t { transformer, unconditional };

// Safetensors files with the names that Hugging Face repositories have.
void write_demo_transformer(const std::string& path, DemoPart part);
void write_demo_text_encoder(const std::string& path, const qwen3::TextConfig& config);
// engine::Decoder, encoder and the statistics of latents, which are the published ones.
void write_demo_vae(const std::string& path);

}  // namespace octet::demo
