// A model on a device: what is loaded, and everything that outlives one picture.
//
// octet::Engine is this behind a lock and the public types. A session belongs to one thread at a
// time; only the flag that stops it is set by others.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "engine/job.h"
#include "engine/kept.h"
#include "engine/lora_files.h"
#include "engine/part_store.h"
#include "engine/work_bytes.h"
#include "nn/attention.h"
#include "octet/rendering.h"

namespace octet::engine {

struct SessionOptions {
  ModelOptions model;  // names of the hub are paths by now
  // One picture, and then the end: what it does not need any more is not kept.
  bool once = false;
  // Of the pictures that are asked for first, for Linears::automatic; none: the model's usual one.
  PictureSize size = {};
};

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
  int preview_every = 1;
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

  const SessionOptions& options() const { return options_; }
  const models::Family& family() const { return family_; }
  const models::Model& model() const { return model_; }
  // What jobs are made of; they are of this session alone.
  const std::shared_ptr<const ModelFacts>& facts() const { return facts_; }
  Backend& backend() { return *backend_; }
  const std::vector<PartPlace>& plan() const { return plan_; }
  EngineInfo info() const;

  // The weights of the parts, and what ran for earlier pictures.
  PartStore& text() { return *text_; }
  PartStore& network(size_t index) { return *networks_[index]; }
  size_t network_count() const { return networks_.size(); }
  PartStore& decoder() { return *decoder_; }
  Kept& kept() { return kept_; }
  nn::Context context() {
    return {.backend = *backend_,
            .dtype = dtype_,
            .stop = &stop_,
            .scores = nn::scores_for(options_.model.attention)};
  }

  // Throws Cancelled when the work is to end.
  void tell(const OnRenderProgress& told, const RenderProgress& progress) const;
  bool is_stopped() const { return stop_.load(std::memory_order_relaxed); }
  // Everything that is to stay; what render() does for parts that are not there.
  void load(const OnRenderProgress& progress);
  void load(PartStore& store, const OnRenderProgress& progress);
  const WorkBytes& work_bytes() const { return work_; }
  // Whether so many velocities of a job may be made at once, beside what is there.
  bool has_room_to_batch(size_t count, const Job& job) const;

  // A job of another session is refused.
  RenderReport render(const Job& job, const SessionCallbacks& callbacks);
  // A few steps at a size, which choose kernels; 0 x 0: the model's own.
  void warm_up(PictureSize size, bool previews, const OnRenderProgress& progress);
  // The next picture encodes its caption, also one that was encoded before.
  void forget_captions() {
    kept_.prompts = {};
    kept_.preparations.forget_texts();
  }

  // See Engine.
  void set_loras(const std::vector<Lora>& loras, const OnRenderProgress& progress);
  // Those that a job is rendered with.
  const std::vector<Lora>& loras_of(const Job& job) const {
    return job.request.loras ? *job.request.loras : options_.model.loras;
  }

 private:
  void merge(const OpenedLoras& loras);
  // In place of those that are merged now.
  void use_loras(const std::vector<Lora>& loras, const OnRenderProgress& progress);
  void make_plan();
  // For Linears::automatic: the large linears that are faster in floating point; empty: none.
  std::function<bool(const nn::LinearSpec&)> faster_in_floating() const;
  void check_usual_size() const;

  SessionOptions options_;
  const std::atomic<bool>& stop_;
  const models::Family& family_;
  std::unique_ptr<Backend> backend_;
  DType dtype_;
  models::Model model_;
  std::shared_ptr<const ModelFacts> facts_;
  LoraFiles lora_files_;
  std::vector<Lora> merged_;     // LoRAs, as they were asked for
  OpenedLoras loras_;            // the same
  std::vector<PartPlace> plan_;  // text encoder, networks, decoder
  WorkBytes work_;
  uint64_t available_bytes_ = 0;
  std::unique_ptr<PartStore> text_, decoder_;
  std::vector<std::unique_ptr<PartStore>> networks_;
  Kept kept_;
};

}  // namespace octet::engine
