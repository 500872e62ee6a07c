// A model on a device: what is loaded, and everything that outlives one picture.
//
// octet::Engine wraps it in a lock and public types. A session belongs to one thread at a time;
// others may only set the flag that stops it.
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
  ModelOptions model;  // names of the Hub resolved to paths
  // For a single picture: what is not needed any more is released.
  bool once = false;
  // Of the first pictures, for Linears::automatic; none: the model's default.
  PictureSize size = {};
};

// The seed of image `index`: a request with this seed gives that image first. Counts up from the
// request's seed, and from 0 after the largest number.
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
  std::function<std::shared_ptr<const Job>()> upcoming;  // may return null
  // Each image when it is ready, with the report so far.
  std::function<void(const RenderedImage&, const RenderReport&)> image;
};

class Session {
 public:
  // Opens and checks all files, and plans where parts stay; reads no weights. `stop` may be set at
  // any time.
  Session(const SessionOptions& options, const std::atomic<bool>& stop);
  // The same with a given backend and family, for tests.
  Session(const SessionOptions& options, const std::atomic<bool>& stop,
          std::unique_ptr<Backend> backend, const models::Family& family);
  // A model without files, whose weights are random numbers that stay on the device, for
  // benchmarks.
  Session(const SessionOptions& options, const std::atomic<bool>& stop,
          const models::Family& family, models::Model model);
  ~Session();

  const SessionOptions& options() const { return options_; }
  const models::Family& family() const { return family_; }
  const models::Model& model() const { return model_; }
  // What jobs are made from; they are valid for this session only.
  const std::shared_ptr<const ModelFacts>& facts() const { return facts_; }
  Backend& backend() { return *backend_; }
  const std::vector<PartPlace>& plan() const { return plan_; }
  EngineInfo info() const;

  // The weights of the parts, and what is kept from earlier pictures.
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

  // Throws Cancelled if the work is to stop.
  void tell(const OnRenderProgress& told, const RenderProgress& progress) const;
  bool is_stopped() const { return stop_.load(std::memory_order_relaxed); }
  // Loads everything that stays, as render() does for parts that are missing.
  void load(const OnRenderProgress& progress);
  void load(PartStore& store, const OnRenderProgress& progress);
  const WorkBytes& work_bytes() const { return work_; }
  double free_bytes() const;  // of the device, for work
  // Whether free memory allows `count` evaluations of a job as one batch.
  bool has_room_to_batch(size_t count, const Job& job) const;

  // A job of another session is refused.
  RenderReport render(const Job& job, const SessionCallbacks& callbacks);
  // A few steps at a size, which choose kernels; 0 x 0: the model's default size.
  void warm_up(PictureSize size, bool previews, const OnRenderProgress& progress);
  // The next picture encodes its caption even if that was encoded before.
  void forget_captions() {
    kept_.prompts = {};
    kept_.preparations.forget_texts();
  }

  // See Engine.
  void set_loras(const std::vector<Lora>& loras, const OnRenderProgress& progress);
  // The LoRAs that a job is rendered with.
  const std::vector<Lora>& loras_of(const Job& job) const {
    return job.request.loras ? *job.request.loras : options_.model.loras;
  }

 private:
  void merge(const OpenedLoras& loras);
  // Replaces those that are merged now.
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
  std::vector<Lora> merged_;     // LoRAs as requested
  OpenedLoras loras_;            // the same, opened
  std::vector<PartPlace> plan_;  // text encoder, networks, decoder
  WorkBytes work_;
  uint64_t available_bytes_ = 0;
  std::unique_ptr<PartStore> text_, decoder_;
  std::vector<std::unique_ptr<PartStore>> networks_;
  Kept kept_;
};

}  // namespace octet::engine
