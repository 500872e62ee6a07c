#include "engine/generate.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/invalid_request.h"
#include "base/stopwatch.h"
#include "engine/noise.h"
#include "models/ideogram4/model_parts.h"
#include "models/qwen3/chat_prompt.h"
#include "models/qwen3/text_encoder.h"

namespace octet::engine {
namespace {

using ideogram4::Dit;
using ideogram4::DitConfig;
using ideogram4::DitPrompt;

// One transformer with what it needs to know about the caption.
struct Network {
  Dit dit;
  DitPrompt prompt;

  std::vector<float> velocity(nn::Context& ctx, std::span<const float> z, float time) const {
    const nn::Matrix uploaded =
        nn::upload_matrix(ctx, z.data(), prompt.image_tokens(), dit.config.latent_channels);
    std::vector<float> velocity(z.size());
    download_matrix(ctx, forward(ctx, dit, prompt, uploaded, time), velocity.data());
    return velocity;
  }
};

struct Networks {
  Network conditional;
  std::optional<Network> unconditional;  // none when no step is guided
};

flux2_vae::LatentStatistics statistics_of(const std::string& folder,
                                          const flux2_vae::VaeConfig& config,
                                          ideogram4::Convention convention, DType dtype) {
  if (convention == ideogram4::Convention::diffusers) {
    return flux2_vae::stored_statistics(Checkpoint(folder), config, dtype);
  }
  const int64_t channels = config.latent_channels * flux2_vae::kPatch * flux2_vae::kPatch;
  flux2_vae::LatentStatistics published = flux2_vae::published_statistics();
  check(std::ssize(published.scale) == channels,
        "{}: tokens have {} channels, and the published statistics of latents are for {}; take "
        "those of the file with --convention diffusers",
        folder, channels, published.scale.size());
  return published;
}

class Run {
 public:
  Run(nn::Context& ctx, ThreadPool& pool, const GenerateRequest& request,
      const OnProgress& on_progress)
      : profile_(ctx.backend),
        ctx_{ctx.backend, ctx.dtype, &profile_},
        pool_(pool),
        request_(request),
        on_progress_(on_progress) {}

  LatentShape check_only() {
    check_all();
    return {grid_height_ * grid_width_, config_.latent_channels, schedule_.steps()};
  }

  GenerateReport images(const OnImage& on_image) {
    check_all();
    const Stopwatch watch;
    auto seconds_since = [&, before = 0.0]() mutable {
      const double now = watch.microseconds() * 1e-6;
      return now - std::exchange(before, now);
    };
    std::vector<float> features = encode();
    report_.text_s = seconds_since();
    std::exception_ptr interruption;
    {
      const Networks networks = load(std::move(features));
      report_.load_s = seconds_since();
      try {
        denoise(networks);
      } catch (...) {
        // What is complete is worth a picture, also when the user stops at the ninth of ten.
        if (latents_.empty()) throw;
        interruption = std::current_exception();
      }
    }
    report_.denoise_s = seconds_since();
    decode(on_image);
    report_.decode_s = seconds_since();
    if (interruption) std::rethrow_exception(interruption);
    if (stopped_) throw stopped();
    return report_;
  }

 private:
  // Everything that can be known before weights are read.
  void check_all() {
    check(request_.images >= 1 && request_.images <= kMostImages, "images: {}, expected 1 to {}",
          request_.images, kMostImages);
    check_value(request_.noise.empty() || request_.images == 1,
                "noise: given noise makes one picture, got {} images; leave their number out",
                request_.images);
    check_native_int8();
    const ideogram4::ModelFolders& folders = request_.folders;
    check_image_size(request_.size, size_limits(folders, request_.convention));
    ideogram4::ModelParts parts = open_parts(folders, is_guided(request_.schedule));
    tokens_ = qwen3::encode_caption(parts.tokenizer, request_.caption);
    report_.text_tokens = static_cast<int64_t>(tokens_.size());
    config_ = parts.dit;
    ideogram4::check_loras(request_.loras, config_);
    statistics_of(folders.vae, parts.vae, request_.convention, ctx_.dtype);
    const int64_t side = parts.token_side();
    text_encoder_.emplace(std::move(parts.text_encoder));
    grid_height_ = request_.size.height / side;
    grid_width_ = request_.size.width / side;
    ideogram4::ScheduleRequest schedule = request_.schedule;
    schedule.width = request_.size.width;
    schedule.height = request_.size.height;
    schedule.convention = request_.convention;
    schedule_ = make_schedule(schedule);
    report_.steps = schedule_.steps();
    check(request_.noise.empty() || request_.noise.size() == elements(),
          "noise: {} numbers, expected {} for a picture of this size", request_.noise.size(),
          elements());
    check(std::all_of(request_.noise.begin(), request_.noise.end(),
                      [](float value) { return std::isfinite(value); }),
          "noise: holds a NaN or an infinity, expected numbers around 0");
  }

  void check_native_int8() const {
    if (!request_.require_int8) return;
    const std::string reason = ctx_.backend.why_not_native_int8();
    check(reason.empty(), "--require-int8: {}", reason);
  }

  std::vector<float> encode() {
    constexpr int64_t kLayers = qwen3::kRunLayers;
    tell({Stage::text, 0, kLayers});
    std::vector<float> features = text_encoder_->encode(ctx_, pool_, tokens_, [&](int64_t done) {
      tell({Stage::text, done, kLayers});
    });
    fingerprint_.add(text_encoder_->fingerprint());
    text_encoder_.reset();
    return features;
  }

  Network load(const ideogram4::DitFiles& files, bool conditional,
               const std::vector<float>& features) {
    ideogram4::Loading loading{
        pool_, &fingerprint_, [&](uint64_t done, uint64_t total) {
          tell({Stage::load, static_cast<int64_t>(done), static_cast<int64_t>(total)});
        }};
    loading.loras = request_.loras;
    loading.keep_converted = request_.keep_converted;
    Dit dit = load_dit(ctx_, files, conditional, request_.int8, loading);
    DitPrompt prompt = prepare(ctx_, dit, features, grid_height_, grid_width_);
    return {std::move(dit), std::move(prompt)};
  }

  // By value, so that the features are released with it: they are large for long captions.
  Networks load(std::vector<float> features) {
    Networks networks{load(request_.folders.transformer, true, features), std::nullopt};
    if (is_guided(request_.schedule)) {
      networks.unconditional.emplace(load(request_.folders.unconditional, false, {}));
    }
    return networks;
  }

  // Leaves the latents of all images.
  void denoise(const Networks& networks) {
    const auto velocity = [&](std::span<const float> z, float time, Branch branch) {
      const Network& network =
          branch == Branch::conditional ? networks.conditional : *networks.unconditional;
      return network.velocity(ctx_, z, time);
    };
    for (int image = 0; image < request_.images; ++image) {
      latents_.push_back(sample(noise(image), schedule_, velocity, [&](const SamplerStep& step) {
        profile_.collect();
        if (request_.on_latent && step.done > 0) request_.on_latent(image, step);
        tell({Stage::denoise, int64_t{image} * step.total + step.done,
              int64_t{request_.images} * step.total, step.seconds});
        return true;
      }));
    }
  }

  std::vector<float> noise(int image) const {
    if (!request_.noise.empty()) return request_.noise;
    return make_noise(seed_of(request_.seed, image), /*image=*/0, elements());
  }

  // To the end even when the user wants to stop: these images took far longer to denoise.
  void decode(const OnImage& on_image) {
    const auto total = static_cast<int64_t>(latents_.size());
    const auto told = [&](int64_t done) {
      stopped_ = (on_progress_ && !on_progress_({Stage::decode, done, total})) || stopped_;
    };
    told(0);
    const Decoder decoder(ctx_, request_.folders.vae, request_.convention, {pool_, &fingerprint_});
    for (int64_t i = 0; i < total; ++i) {
      GeneratedImage image;
      image.index = static_cast<int>(i);
      image.seed = seed_of(request_.seed, image.index);
      image.size = request_.size;
      image.latent = std::move(latents_[static_cast<size_t>(i)]);
      image.pixels =
          flux2_vae::to_bytes(decoder.decode(ctx_, image.latent, grid_height_, grid_width_));
      profile_.collect();
      report_.kernels = profile_.kernels();
      report_.ops = profile_.ops();
      report_.checkpoint = fingerprint_.to_string();
      report_.memory = ctx_.backend.memory();
      on_image(image, report_);
      told(i + 1);
    }
  }

  void tell(const GenerateProgress& progress) const {
    if (on_progress_ && !on_progress_(progress)) throw stopped();
  }

  Cancelled stopped() const {
    return Cancelled(fmt::format("stopped on request; {} of {} pictures are complete",
                                 latents_.size(), request_.images));
  }

  size_t elements() const {
    return static_cast<size_t>(grid_height_ * grid_width_ * config_.latent_channels);
  }

  nn::Profile profile_;
  nn::Context ctx_;  // the caller's, watched
  ThreadPool& pool_;
  const GenerateRequest& request_;
  const OnProgress& on_progress_;
  std::vector<int32_t> tokens_;
  DitConfig config_;
  std::optional<qwen3::TextEncoder> text_encoder_;
  int64_t grid_height_ = 0, grid_width_ = 0;
  ideogram4::Schedule schedule_;
  weights::Fingerprint fingerprint_;
  std::vector<std::vector<float>> latents_;  // of complete images
  bool stopped_ = false;                     // while they were decoded
  GenerateReport report_;
};

}  // namespace

models::SizeLimits size_limits(const ideogram4::ModelFolders& folders,
                               ideogram4::Convention convention) {
  const auto vae = flux2_vae::find_vae_config(folders.vae);
  models::SizeLimits limits;
  const auto side = static_cast<int>(flux2_vae::kPatch * vae.factor());
  // Models with other VAEs are small ones for tests, which may make small images.
  if (side != limits.token_side || convention == ideogram4::Convention::diffusers) {
    limits.smallest = side;
    limits.aspect = limits.largest;
  }
  limits.token_side = side;
  return limits;
}

LatentShape check_request(nn::Context& ctx, ThreadPool& pool, const GenerateRequest& request) {
  return Run(ctx, pool, request, {}).check_only();
}

GenerateReport generate(nn::Context& ctx, ThreadPool& pool, const GenerateRequest& request,
                        const OnProgress& on_progress, const OnImage& on_image) {
  return Run(ctx, pool, request, on_progress).images(on_image);
}

Decoder::Decoder(nn::Context& ctx, const std::string& folder, ideogram4::Convention convention,
                 const ideogram4::Loading& loading)
    : vae_(load_vae(ctx, folder, loading)),
      folder_(folder),
      statistics_(statistics_of(folder, vae_.config, convention, ctx.dtype)) {}

std::vector<float> Decoder::decode(nn::Context& ctx, const std::vector<float>& latent,
                                   int64_t grid_height, int64_t grid_width) const {
  const std::vector<float> pixels =
      flux2_vae::unpatchify(latent, statistics_, grid_height, grid_width);
  const int64_t height = flux2_vae::kPatch * grid_height, width = flux2_vae::kPatch * grid_width;
  const nn::Matrix uploaded =
      nn::upload_matrix(ctx, pixels.data(), height * width, vae_.config.latent_channels);
  const nn::Matrix image = flux2_vae::decode(ctx, vae_, uploaded, height, width);
  std::vector<float> values(static_cast<size_t>(image.view().shape.elements()));
  download_matrix(ctx, image, values.data());
  const auto is_finite = [](float value) { return std::isfinite(value); };
  check(std::all_of(values.begin(), values.end(), is_finite),
        "{}: decoding gave a NaN or an infinity; its weights are damaged or of another model",
        folder_);
  return values;
}

}  // namespace octet::engine
