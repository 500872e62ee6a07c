// From a caption to images: everything between a model's folders and pixels.
//
// The parts of a model never meet in memory but for the two transformers: the text encoder runs
// first, then all images are denoised, then decoded.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "engine/sampler.h"
#include "models/ideogram4/convention.h"
#include "models/ideogram4/load.h"
#include "models/ideogram4/model_folders.h"
#include "models/ideogram4/schedule.h"
#include "models/image_size.h"
#include "nn/profile.h"

namespace octet::engine {

// Latents wait for the decoder, 8 MB each at 2048 x 2048 pixels.
inline constexpr int kMostImages = 1000;

struct GenerateRequest {
  ideogram4::ModelFolders folders;
  std::string caption;  // as the tokenizer is to get it
  models::ImageSize size;
  ideogram4::ScheduleRequest schedule;  // its size and convention are those of the request
  ideogram4::Convention convention = ideogram4::Convention::official;
  uint64_t seed = 0;  // of the first image; see seed_of()
  int images = 1;
  std::vector<float> noise;  // F32 [tokens, channels] of one image in place of the seed's
  bool int8 = true;          // the transformers' large linears
  bool require_int8 = false;
  std::vector<weights::LoraRequest> loras;
  bool keep_converted = false;                                        // see ideogram4::Loading
  std::function<void(int image, const SamplerStep& step)> on_latent;  // after each step
};

// The seed of image `index`: as the seed of a request it gives that image first. Counts on from the
// request's, beyond the largest number at 0.
constexpr uint64_t seed_of(uint64_t seed, int index) { return seed + static_cast<uint64_t>(index); }

struct LatentShape {
  int64_t tokens = 0, channels = 0;
  int steps = 0;  // that lead to it
  bool operator==(const LatentShape&) const = default;
};

enum class Stage : uint8_t { text, load, denoise, decode };

struct GenerateProgress {
  Stage stage = Stage::text;
  int64_t done = 0, total = 0;  // layers, bytes, steps of all images, images
  double seconds = 0;           // of the last step, when denoising
};

// False ends the work with Cancelled, after the images that are denoised were decoded.
using OnProgress = std::function<bool(const GenerateProgress&)>;

struct GeneratedImage {
  int index = 0;
  uint64_t seed = 0;  // its own
  models::ImageSize size;
  std::vector<uint8_t> pixels;  // RGB, rows from the top
  std::vector<float> latent;    // F32 [tokens, channels], as sampled
};

struct GenerateReport {
  int64_t text_tokens = 0;
  int steps = 0;
  std::string checkpoint;  // fingerprint of all weights
  std::vector<nn::Profile::KernelUse> kernels;
  std::map<std::string, nn::OpTime> ops;
  double text_s = 0, load_s = 0, denoise_s = 0, decode_s = 0;
  MemoryUse memory;
};

// Which sizes the model takes, by its VAE. Diffusers asks for multiples of a token's side alone.
models::SizeLimits size_limits(const ideogram4::ModelFolders& folders,
                               ideogram4::Convention convention);

// Gets each image when it is ready, with the report up to it.
using OnImage = std::function<void(const GeneratedImage&, const GenerateReport&)>;

// The checks that generate() makes of request and folders as a whole before anything is loaded.
LatentShape check_request(nn::Context& ctx, ThreadPool& pool, const GenerateRequest& request);

GenerateReport generate(nn::Context& ctx, ThreadPool& pool, const GenerateRequest& request,
                        const OnProgress& on_progress, const OnImage& on_image);

// Latents to images.
class Decoder {
 public:
  Decoder(nn::Context& ctx, const std::string& folder, ideogram4::Convention convention,
          const ideogram4::Loading& loading);

  int64_t token_side() const { return flux2_vae::kPatch * vae_.config.factor(); }
  // latent F32 [grid_height * grid_width, channels] as sampled -> F32 [pixels, 3], about -1 to 1.
  std::vector<float> decode(nn::Context& ctx, const std::vector<float>& latent, int64_t grid_height,
                            int64_t grid_width) const;

 private:
  flux2_vae::VaeDecoder vae_;
  std::string folder_;
  flux2_vae::LatentStatistics statistics_;
};

}  // namespace octet::engine
