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
#include "engine/denoiser.h"
#include "engine/device_parts.h"
#include "engine/job.h"
#include "engine/kept.h"
#include "engine/lora_files.h"
#include "engine/part_store.h"
#include "engine/residency.h"
#include "models/footprint.h"
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
  // The same with given backends, one or two, and a given family, for tests.
  Session(const SessionOptions& options, const std::atomic<bool>& stop,
          std::vector<std::unique_ptr<Backend>> backends, const models::Family& family);
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
  // Of all but the networks that a second device has.
  Backend& backend() { return *backends_.front(); }
  size_t device_count() const { return backends_.size(); }
  const std::vector<std::unique_ptr<Backend>>& backends() const { return backends_; }
  // In words: "a", or "a and b".
  std::string device_text() const;
  MemoryUse memory() const;  // of all devices
  const std::vector<PartPlace>& plan() const { return plan_; }
  EngineInfo info() const;

  // The weights of the parts, and what is kept from earlier pictures.
  PartStore& text() { return *text_; }
  // The networks, by device.
  Denoiser& denoiser(size_t device) { return *denoisers_[device]; }
  const Denoiser& denoiser(size_t device) const { return *denoisers_[device]; }
  void for_each_network(const std::function<void(PartStore&)>& visit);
  PartStore& decoder() { return *decoder_; }
  Kept& kept() { return kept_; }
  nn::Context context() { return context_on(backend()); }

  // Throws Cancelled if the work is to stop.
  void tell(const OnRenderProgress& told, const RenderProgress& progress) const;
  bool is_stopped() const { return stop_.load(std::memory_order_relaxed); }
  // Loads everything that stays, as render() does for parts that are missing.
  void load(const OnRenderProgress& progress);
  void load(PartStore& store, const OnRenderProgress& progress);
  const WorkBytes& work_bytes() const { return denoiser(0).work; }
  // Plans again for a job that takes more than the session has room for; what was loaded is
  // released then, unless no plan makes room for it.
  void fit(const Job& job);
  // After memory has run out: plans again with what is free now, which may be less than when the
  // model was opened. Whether that changes anything.
  bool gives_way();

  // A job of another session is refused.
  RenderReport render(const Job& job, const SessionCallbacks& callbacks);
  // A few steps at a size, which choose kernels; 0 x 0: the model's default size.
  void warm_up(PictureSize size, bool previews, const OnRenderProgress& progress);
  // The next picture encodes its caption even if that was encoded before.
  void forget_captions() {
    kept_.prompts = {};
    for (const auto& device : denoisers_) device->preparations.forget_texts();
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
  nn::Context context_on(Backend& backend) {
    return {.backend = backend,
            .dtype = dtype_,
            .stop = &stop_,
            .scores = nn::scores_for(options_.model.attention),
            .rows_at_once = rows_at_once_};
  }
  void add_denoisers();
  // Of WorkBytes, for the devices. Parts are asked while none of their weights is loaded.
  void count_work();
  void make_plan(const models::Extent& extent, bool checked = true);
  void plan_within(const models::Extent& extent);
  void use_rows(int64_t at_once);
  void plan_again(const models::Extent& extent);
  models::RunAs text_as() const;
  models::RunAs networks_as() const;
  DeviceParts parts_of(const Denoiser& device);
  uint64_t budget_of(const Denoiser& device, double free_host) const;
  void check_fits(const models::Extent& extent);
  // `work`: of its steps.
  void check_budget(const Denoiser& device, const DevicePlan& plan, uint64_t free,
                    uint64_t work) const;
  void place(Denoiser& device, DevicePlan& plan, const models::RunAs& networks);
  void add_stream(Denoiser& device, const DevicePlan& plan);
  models::Extent usual_extent() const;
  // For Linears::automatic: the large linears that are faster in floating point; empty: none.
  std::function<bool(const nn::LinearSpec&)> faster_in_floating() const;
  void check_usual_size() const;

  SessionOptions options_;
  const std::atomic<bool>& stop_;
  const models::Family& family_;
  std::vector<std::unique_ptr<Backend>> backends_;
  DType dtype_;
  models::Model model_;
  models::Model again_;  // networks that both devices have: those of the second
  std::shared_ptr<const ModelFacts> facts_;
  LoraFiles lora_files_;
  std::vector<Lora> merged_;     // LoRAs as requested
  OpenedLoras loras_;            // the same, opened
  std::vector<PartPlace> plan_;  // text encoder, networks by device, decoder
  std::vector<DevicePlan> device_plans_;
  uint64_t available_bytes_ = 0;
  int64_t rows_at_once_ = 0;  // nn::Context's
  std::unique_ptr<PartStore> text_, decoder_;
  std::vector<std::unique_ptr<Denoiser>> denoisers_;
  Kept kept_;
};

}  // namespace octet::engine
