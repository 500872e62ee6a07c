// The decoder of the FLUX.2 VAE: a latent becomes an image.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/unset_vector.h"
#include "formats/checkpoint.h"
#include "models/flux2_vae/config.h"
#include "nn/linear.h"

namespace octet::flux2_vae {

struct Norm {
  nn::Vector weight, bias;
};

// conv2(silu(norm2(conv1(silu(norm1(x)))))) + shortcut(x)
struct Resnet {
  Norm norm1, norm2;
  nn::Conv conv1, conv2;
  nn::Conv shortcut;  // only where the number of channels changes
  bool has_shortcut = false;
};

struct MidAttention {
  Norm norm;
  nn::Linear q, k, v, out;
};

struct UpBlock {
  std::vector<Resnet> resnets;
  nn::Conv upsample;  // after doubling; none in the last block
  bool doubles = false;
};

struct VaeWeights {
  nn::Conv post_quant;
  nn::Conv conv_in;
  Resnet mid1, mid2;
  MidAttention mid_attention;
  std::vector<UpBlock> up;
  Norm norm_out;
  nn::Conv conv_out;
};

struct VaeDecoder : VaeWeights {
  VaeConfig config;
};

// The one list of its weights.
void visit_weights(VaeDecoder& vae, nn::WeightVisitor& visit);

// How latents were normalised for training: z = (latent - shift) / scale, per channel of a token.
struct LatentStatistics {
  std::vector<float> shift, scale;
};

// What the VAE's file stores. Diffusers takes these, computed in the type of its activations;
// whether they are those that a model was trained with depends on who made the file.
LatentStatistics stored_statistics(const Checkpoint& vae, const VaeConfig& config, DType dtype);

// z [tokens, 4 * channels] of a grid, one row per token -> [latent pixels, channels]: undoes the
// normalisation and lays each token out as two by two pixels.
std::vector<float> unpatchify(std::span<const float> z, const LatentStatistics& statistics,
                              int64_t grid_height, int64_t grid_width);

// The most bytes of images that decode() has at a time, its latent among them, where it has each
// image as a whole.
uint64_t image_bytes(const VaeConfig& config, int64_t height, int64_t width, DType dtype);

// And where wide images wait in host memory, and pass through the device in strips.
struct BytesInStrips {
  uint64_t least = 0;  // that decode() takes as a bound
  uint64_t exact = 0;  // from here on a GPU, too, gives the bits of whole images; see ConvArgs
};
BytesInStrips bytes_in_strips(const VaeConfig& config, int64_t height, int64_t width, DType dtype);

// An image as the network gives it, F32 [height * width, 3] of its own pixels, about -1 to 1;
// latent [height * width, channels] of the latent. Images that would take more than ctx.image_bytes
// pass in strips, without seams: a norm knows all of its image, and a convolution the lines next to
// a strip. `progress`, or nobody, is told the share of resnets that ran.
UnsetVector<float> decode(nn::Context& ctx, const VaeDecoder& vae, const nn::Matrix& latent,
                          int64_t height, int64_t width,
                          const std::function<void(double)>& progress = {});

// --- for the parts of decoding ---

inline GroupNorm group_norm_of(const VaeConfig& config, const Norm& norm, bool silu) {
  constexpr float kNormEps = 1e-6f;
  return {config.groups, kNormEps, norm.weight.view(), norm.bias.view(), silu};
}

}  // namespace octet::flux2_vae
