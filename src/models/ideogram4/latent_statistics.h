// How Ideogram 4 normalises latents of the FLUX.2 VAE.
#pragma once

#include "models/flux2_vae/vae.h"

namespace octet::ideogram4 {

// The model's own tables, of 128 channels.
flux2_vae::LatentStatistics published_statistics();

}  // namespace octet::ideogram4
