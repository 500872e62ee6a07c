// A VAE's files: which checkpoint, in whose names, and the configuration that goes with them.
// Folders of Hugging Face, and single files, which have no config.json, in the names of diffusers
// or in those of the authors of FLUX.2, which ComfyUI keeps.
#pragma once

#include <string>

#include "models/flux2_vae/config.h"
#include "weights/weight_source.h"

namespace octet::flux2_vae {

struct VaeSource {
  VaeConfig config;
  weights::WeightSource weights;  // asked in the names of diffusers
};

// `path`: a checkpoint, or a folder with one. The configuration is that of the config.json in the
// folder or next to the file; without one, the published one with the numbers of channels that the
// shapes say.
VaeSource open_vae(const std::string& path);

}  // namespace octet::flux2_vae
