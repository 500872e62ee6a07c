// A model on a device: what is loaded, and everything that outlives one picture.
//
// octet::Engine is this behind a lock and the public types. A session belongs to one thread at a
// time; only the flag that stops it is set by others.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "engine/linears_ran.h"
#include "engine/part_store.h"
#include "engine/preview.h"
#include "engine/prompt_cache.h"
#include "models/family.h"
#include "models/presets.h"
#include "nn/attention.h"
#include "nn/profile.h"
#include "octet/rendering.h"
#include "weights/lora/lora.h"

namespace octet::engine {

struct SessionOptions {
  ModelOptions model;  // names of the hub are paths by now
  // One picture, and then the end: what it does not need any more is not kept.
  bool once = false;
  // Of the pictures that are asked for first, for Linears::automatic; none: the model's usual one.
  PictureSize size = {};
};

// One request, once its words are understood.
struct RenderJob {
  std::string prompt;  // as the tokenizer is to get it
  models::ScheduleRequest schedule;
  uint64_t seed = 0;
  int images = 1;
  std::vector<float> noise;  // F32 [tokens, channels] of one image in place of the seed's
};

// Latents wait for the decoder, 8 MB each at 2048 x 2048 pixels.
inline constexpr int kMostImages = 1000;

// The seed of image `index`: as the seed of a request it gives that image first. Counts on from the
// request's, beyond the largest number at 0.
constexpr uint64_t seed_of(uint64_t seed, int index) { return seed + static_cast<uint64_t>(index); }

struct RenderedImage {
  int index = 0;
  uint64_t seed = 0;          // its own
  std::vector<uint8_t> rgb;   // rows from the top
  std::vector<float> latent;  // F32 [tokens, channels], as sampled
};

struct SessionCallbacks {
  OnRenderProgress progress;
  std::function<void(const TextFeatures&)> text;
  std::function<void(const Preview&)> preview;
  std::function<void(const LatentStep&)> latent;
  // Each image when it is ready, with the report up to it.
  std::function<void(const RenderedImage&, const RenderReport&)> image;
};

class Session {
 public:
  // Opens and checks all files, and plans where they stay; reads no weights. `stop` may be set at
  // any time.
  Session(const SessionOptions& options, const std::atomic<bool>& stop);
  // The same with a backend and a model that are there already: for tests.
  Session(const SessionOptions& options, const std::atomic<bool>& stop,
          std::unique_ptr<Backend> backend, const models::Family& family);
  // A model without files, all of whose weights are random numbers and stay on the device: for
  // benchmarks.
  Session(const SessionOptions& options, const std::atomic<bool>& stop,
          const models::Family& family, models::Model model);
  ~Session();

  const models::Family& family() const { return family_; }
  const models::Model& model() const { return model_; }
  const models::PictureDefaults& defaults() const { return defaults_; }
  Backend& backend() { return *backend_; }
  EngineInfo info() const;

  // Everything that is to stay; what render() does for parts that are not there.
  void load(const OnRenderProgress& progress);

  LatentShape check(const RenderJob& job) const;
  RenderReport render(const RenderJob& job, const SessionCallbacks& callbacks);
  // The next picture encodes its caption, also one that was encoded before.
  void forget_captions() {
    prompts_ = {};
    forget_prepared();
  }

  // See Engine.
  void set_loras(const std::vector<Lora>& loras, const OnRenderProgress& progress);

 private:
  friend class Rendering;
  using Loras = std::vector<std::shared_ptr<const weights::Lora>>;

  Loras open_loras(const std::vector<Lora>& requests);
  // What LoRAs do to each network, worked out before anything changes.
  struct Merge {
    std::vector<std::string> changes;
    weights::WeightSource::Change change;
  };
  std::vector<Merge> merges_of(const Loras& loras) const;
  void merge(const Loras& loras, std::vector<Merge> merges);
  void plan();
  // For Linears::automatic: the large linears that are faster in floating point; empty: none.
  std::function<bool(const nn::LinearSpec&)> faster_in_floating() const;
  // Throws Cancelled when the work is to end.
  void tell(const OnRenderProgress& told, const RenderProgress& progress) const;
  void load(PartStore& store, const OnRenderProgress& progress);
  void check_usual_size() const;
  nn::Context context() {
    return {.backend = *backend_,
            .dtype = dtype_,
            .stop = &stop_,
            .scores = nn::scores_for(options_.model.attention)};
  }

  SessionOptions options_;
  const std::atomic<bool>& stop_;
  const models::Family& family_;
  std::unique_ptr<Backend> backend_;
  DType dtype_;
  models::PictureDefaults defaults_;
  models::Model model_;
  Loras loras_;
  std::vector<PartPlace> plan_;  // text encoder, networks, decoder
  uint64_t work_bytes_ = 0, available_bytes_ = 0;
  std::unique_ptr<PartStore> text_, decoder_;
  std::vector<std::unique_ptr<PartStore>> networks_;

  PromptCache prompts_;
  LinearUses text_linears_;  // when the text encoder last ran
  // Of the last picture: the same caption in the same size needs no more.
  struct Prepared {
    PromptCache::Tokens tokens;
    models::Grid grid;
    std::unique_ptr<models::Conditioning> conditioning;
    LinearUses linears = {};  // that made it
  };
  std::vector<std::optional<Prepared>> prepared_;  // of each network
  // The same of the schedule.
  struct Timed {
    std::unique_ptr<models::Timeline> timeline;
    bool ran = false;  // and is complete
    LinearUses linears = {};
  };
  std::vector<std::optional<Timed>> timed_;  // of each network
  void forget_prepared() {
    for (auto& prepared : prepared_) prepared.reset();
  }
  void forget_preparations() {
    forget_prepared();
    for (auto& timed : timed_) timed.reset();
  }
  // Kernels of what is kept for later pictures: of the text encoder, and of each network's
  // preparation.
  std::map<std::string, std::vector<nn::Profile::KernelUse>> kept_kernels_;
  std::optional<PreviewMap> preview_;
  double decode_s_per_pixel_ = 0;  // of the last decoding
};

}  // namespace octet::engine
