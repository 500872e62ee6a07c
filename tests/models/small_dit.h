// A transformer small enough for tests, whose every extent differs from the others.
#pragma once

#include "models/ideogram4/config.h"

namespace octet::test {

inline ideogram4::DitConfig small_dit(int64_t layers, int64_t ffn) {
  ideogram4::DitConfig config;
  config.latent_channels = 16;
  config.layers = layers;
  config.heads = 2;
  config.head_dim = 32;
  config.ffn = ffn;
  config.modulation = 24;
  config.text_features = 40;
  config.mrope_section = {6, 5, 5};
  return config;
}

}  // namespace octet::test
