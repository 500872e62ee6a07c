#include "engine/rendering.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/free_memory.h"
#include "base/invalid_request.h"
#include "engine/noise.h"
#include "engine/pixels.h"
#include "engine/residency.h"

namespace octet::engine {
Checked check_job(const Session& session, const RenderJob& job) {
  const models::Model& model = session.model();
  check_value(job.images >= 1 && job.images <= kMostImages, "images",
              "images: {}, expected 1 to {}", job.images, kMostImages);
  check_value(job.noise.empty() || job.images == 1, "noise",
              "noise: given noise makes one picture, got {} images; leave the number out",
              job.images);
  const PictureSize size = job.schedule.size;
  models::check_image_size(size, model.sizes);
  Checked checked;
  checked.guided = models::is_guided(job.schedule);
  check_value(!checked.guided || model.networks.size() > 1, "guidance",
              "guidance: the model is loaded with one network, and guidance needs two; set "
              "`guidance` to 1");
  checked.tokens = model.tokenize(job.prompt);
  const int side = model.sizes.token_side;
  checked.grid = {size.height / side, size.width / side};
  checked.schedule = session.family().make_schedule(job.schedule);
  const auto elements =
      static_cast<size_t>(checked.grid.tokens() * model.decoder->latent_channels());
  // Noise comes from files: what is wrong with it is no wrong usage.
  check(job.noise.empty() || job.noise.size() == elements,
        "noise: {} numbers, expected {} for a picture of this size", job.noise.size(), elements);
  check(std::all_of(job.noise.begin(), job.noise.end(), [](float v) { return std::isfinite(v); }),
        "noise: contains a NaN or an infinity, expected numbers around 0");
  return checked;
}

Rendering::Rendering(Session& session, const RenderJob& job, const SessionCallbacks& callbacks)
    : session_(session),
      job_(job),
      callbacks_(callbacks),
      checked_(check_job(session, job)),
      profile_(*session.backend_),
      ctx_(session.context()) {
  ctx_.profile = &profile_;
  session_.backend_->reset_peak();
  report_.device = session_.backend_->description();
  report_.width = job.schedule.size.width;
  report_.height = job.schedule.size.height;
  report_.caption = job.prompt;
  report_.preset = job.schedule.preset.name;
  report_.text_tokens = static_cast<int>(checked_.tokens.size());
  report_.steps = checked_.schedule.steps();
  report_.places = text_of(session.plan_);
}

RenderReport Rendering::run() {
  auto seconds_since = [this, before = 0.0]() mutable {
    const double now = watch_.microseconds() * 1e-6;
    return now - std::exchange(before, now);
  };
  std::exception_ptr interruption;
  try {
    load_networks(encode());
    report_.load_s = seconds_since() - report_.text_s;
    try {
      denoise();
    } catch (...) {
      // What is complete is worth a picture, also when the user stops at the ninth of ten; but
      // somebody who calls cancel() does not want to wait.
      if (latents_.empty() || session_.stop_) throw;
      interruption = std::current_exception();
    }
    report_.denoise_s = seconds_since() - report_.decode_s;
    try {
      if (!decoding_failed_) decode_waiting();
    } catch (...) {
      // What went wrong first says more.
      if (!interruption) throw;
    }
  } catch (const Cancelled&) {
    end_use();
    throw stopped();
  } catch (...) {
    end_use();
    throw;
  }
  end_use();
  if (stop_after_decoding_) throw stopped();
  if (!interruption) return report_;
  try {
    std::rethrow_exception(interruption);
  } catch (const Cancelled&) {
    throw stopped();
  }
}

void Rendering::end_use() {
  session_.text_->end_use();
  for (const auto& network : session_.networks_) network->end_use();
  session_.decoder_->end_use();
}

PromptCache::Features Rendering::encode() {
  const double begun = watch_.microseconds();
  PromptCache::Features features = session_.prompts_.find(checked_.tokens);
  report_.text_cached = features != nullptr;
  if (features == nullptr) {
    session_.load(*session_.text_, callbacks_.progress);
    const models::TextEncoder& encoder = *session_.model_.text_encoder;
    const int64_t layers = encoder.unit_count() - 1;
    tell({.stage = Stage::text, .done = 0, .total = layers});
    profile_.enter_network(encoder.name());
    features = std::make_shared<const std::vector<float>>(encoder.encode(
        ctx_, checked_.tokens,
        [&](int64_t done) { tell({.stage = Stage::text, .done = done, .total = layers}); }));
    profile_.enter_network("");
    session_.text_linears_ = profile_.take_linears();
    session_.text_->end_use();
    profile_.collect();
    session_.kept_kernels_["text"] = profile_.kernels();
    if (!session_.options_.once) session_.prompts_.add(checked_.tokens, features);
  }
  report_.text_s = (watch_.microseconds() - begun) * 1e-6;
  if (callbacks_.text) {
    const int64_t channels = session_.model_.text_encoder->feature_count();
    callbacks_.text({std::ssize(*features) / channels, channels, *features});
  }
  return features;
}

void Rendering::load_networks(const PromptCache::Features& features) {
  for (size_t i = 0; i < session_.networks_.size(); ++i) {
    if (i > 0 && !checked_.guided) break;
    session_.load(*session_.networks_[i], callbacks_.progress);
    prepare(i, features);
    prepare_times(i);
  }
}

void Rendering::prepare(size_t network, const PromptCache::Features& features) {
  auto& prepared = session_.prepared_[network];
  const models::Network& model = *session_.model_.networks[network];
  const PromptCache::Tokens tokens = model.sees_text() ? checked_.tokens : PromptCache::Tokens();
  if (prepared && prepared->tokens == tokens && prepared->grid == checked_.grid) return;
  prepared.reset();
  profile_.enter_network(session_.family_.networks[network].name);
  const std::span<const float> seen =
      model.sees_text() ? std::span<const float>(*features) : std::span<const float>();
  prepared.emplace(tokens, checked_.grid, model.prepare(ctx_, seen, checked_.grid));
  profile_.enter_network("");
  keep_record(network, prepared->linears);
}

void Rendering::prepare_times(size_t network) {
  auto& timed = session_.timed_[network];
  const std::span<const float> times =
      std::span(checked_.schedule.times).first(checked_.schedule.deltas.size());
  if (timed && std::ranges::equal(timed->timeline->times(), times)) return;
  timed.reset();
  profile_.enter_network(session_.family_.networks[network].name);
  timed.emplace(session_.model_.networks[network]->make_timeline(ctx_, times));
  profile_.enter_network("");
}

void Rendering::keep_record(size_t network,
                            std::map<std::string, nn::Profile::LinearUse>& linears) {
  linears = profile_.linears();
  profile_.collect();
  auto& kernels = session_.kept_kernels_[std::string(session_.family_.networks[network].name)];
  for (auto& use : profile_.kernels()) {
    const bool known = std::any_of(kernels.begin(), kernels.end(),
                                   [&](const auto& kept) { return kept.layer == use.layer; });
    if (!known) kernels.push_back(std::move(use));
  }
}

void Rendering::velocity(std::optional<NetworkRun>& run, const ConstTensorView& z, int step,
                         size_t network, const TensorView& out) {
  PartStore& store = *session_.networks_[network];
  Session::Timed& timed = *session_.timed_[network];
  if (!run) {
    const bool stays = store.where() == Residency::device && store.is_loaded();
    run.emplace(ctx_, *session_.model_.networks[network],
                *session_.prepared_[network]->conditioning, *timed.timeline, stays);
  }
  profile_.enter_network(session_.family_.networks[network].name);
  run->velocity(z, step, out);
  if (network == 0 && run->launches() > 0) ++report_.recorded_steps;
  store.end_use();
  profile_.enter_network("");
  if (!timed.ran) keep_record(network, timed.linears);
  timed.ran = true;
}

void Rendering::denoise() {
  Sampler sampler(ctx_, checked_.schedule, checked_.grid.tokens(),
                  session_.model_.decoder->latent_channels());
  std::vector<std::optional<NetworkRun>> runs(session_.networks_.size());
  for (int image = 0; image < job_.images; ++image) {
    std::vector<float> noise = job_.noise;
    if (noise.empty()) noise = make_noise(seed_of(job_.seed, image), /*image=*/0, elements());
    latents_.push_back(sampler.run(
        noise,
        [&](const ConstTensorView& z, int step, size_t network, const TensorView& out) {
          velocity(runs[network], z, step, network, out);
        },
        [&](const SamplerStep& step) {
          on_step(image, step);
          return true;
        }));
    // The last one is decoded by whoever tells of decoding.
    if (image + 1 < job_.images && has_room_to_decode()) decode(image);
  }
}

// Beside the networks. Where there is none, pictures wait until these are released.
bool Rendering::has_room_to_decode() const {
  if (session_.decoder_->where() != Residency::device) return false;
  const auto at_hand = session_.backend_->free_memory();
  const double free =
      at_hand ? static_cast<double>(*at_hand) : octet::free_memory().value_or(FreeMemory{}).bytes;
  return free > static_cast<double>(
                    decoding_bytes(*session_.model_.decoder, checked_.grid, session_.dtype_));
}

void Rendering::on_step(int image, const SamplerStep& step) {
  profile_.collect();
  if (step.done == 1 && image == 0) check_what_ran();
  if (step.done > 0 && (callbacks_.latent || callbacks_.preview)) show_step(image, step);
  tell({.stage = Stage::denoise,
        .done = int64_t{image} * step.total + step.done,
        .total = int64_t{job_.images} * step.total,
        .seconds = step.seconds,
        .eta_s = eta_s(image, step)});
}

void Rendering::show_step(int image, const SamplerStep& step) {
  std::vector<float> velocity(elements()), latent(elements());
  download_matrix(ctx_, step.velocity, velocity.data());
  download_matrix(ctx_, step.latent, latent.data());
  if (callbacks_.latent) callbacks_.latent({image, step.done, step.total, velocity, latent});
  if (callbacks_.preview) show_preview(image, step.done, velocity, latent);
}

// Where the picture would be if the rest of the way were as straight as this step.
void Rendering::show_preview(int image, int done, std::span<const float> velocity,
                             std::span<const float> latent) {
  if (!session_.preview_) {
    session_.load(*session_.decoder_, {});
    session_.preview_.emplace(ctx_, *session_.model_.decoder);
    session_.decoder_->end_use();
    profile_.collect();
  }
  const auto& times = checked_.schedule.times;
  const float left = times.back() - times[static_cast<size_t>(done)];
  std::vector<float> ahead(latent.begin(), latent.end());
  for (size_t i = 0; i < ahead.size(); ++i) ahead[i] += left * velocity[i];
  callbacks_.preview({image, done, checked_.schedule.steps(), static_cast<int>(checked_.grid.width),
                      static_cast<int>(checked_.grid.height), session_.preview_->rgb(ahead)});
}

double Rendering::eta_s(int image, const SamplerStep& step) const {
  if (step.done == 0 && image == 0) return -1;
  const double steps_done = image * step.total + step.done;
  const double elapsed = watch_.microseconds() * 1e-6 - report_.text_s - report_.load_s;
  const double per_step = (elapsed - report_.decode_s) / steps_done;
  const double decode =
      session_.decode_s_per_pixel_ * report_.width * report_.height * (job_.images - decoded_);
  return per_step * (job_.images * step.total - steps_done) + decode;
}

// To the end even when the user wants to stop: these images took far longer to denoise.
void Rendering::decode_waiting() {
  const auto total = std::ssize(latents_);
  if (session_.options_.once) {
    for (const auto& network : session_.networks_) network->drop();
    session_.forget_preparations();
  }
  const auto told = [&](int64_t done) {
    const bool goes_on =
        !callbacks_.progress ||
        callbacks_.progress({.stage = Stage::decode, .done = done, .total = total});
    stop_after_decoding_ = stop_after_decoding_ || !goes_on;
  };
  told(decoded_);
  while (decoded_ < total) {
    decode(decoded_);
    told(decoded_);
  }
}

void Rendering::decode(int index) {
  const double begun = watch_.microseconds();
  decoding_failed_ = true;  // until it has not
  session_.load(*session_.decoder_, {});
  std::vector<float>& latent = latents_[static_cast<size_t>(index)];
  RenderedImage image;
  image.index = index;
  image.seed = seed_of(job_.seed, index);
  image.rgb = to_bytes(session_.model_.decoder->decode(ctx_, latent, checked_.grid));
  image.latent = std::move(latent);
  const double seconds = (watch_.microseconds() - begun) * 1e-6;
  report_.decode_s += seconds;
  session_.decode_s_per_pixel_ = seconds / (static_cast<double>(report_.width) * report_.height);
  collect();
  check_what_ran();
  decoding_failed_ = false;
  ++decoded_;
  if (callbacks_.image) callbacks_.image(image, report_);
}

void Rendering::collect() {
  profile_.collect();
  report_.kernels.clear();
  const auto path_of = [dtype = session_.dtype_](const nn::Profile::KernelUse& use) {
    if (use.op == "gemm") return "int8";
    if (use.op == "attention" && use.kernel.ends_with("_int8")) return "int8 scores";
    if (use.op == "attention" && use.kernel.ends_with("_int8_full")) return "int8 attention";
    return use.fake ? "fake int8" : dtype == DType::bf16 ? "bf16" : "f32";
  };
  for (const auto& use : profile_.kernels()) {
    const nn::OpTime& time = use.time;
    report_.kernels.push_back(
        {use.layer, path_of(use), use.kernel, time.calls, time.us, time.tops()});
  }
  // What was kept from an earlier picture ran on these, and not for this one.
  for (const auto& [what, kernels] : session_.kept_kernels_) {
    for (const auto& use : kernels) {
      const bool known = std::any_of(report_.kernels.begin(), report_.kernels.end(),
                                     [&](const KernelUse& row) { return row.layer == use.layer; });
      if (!known) {
        report_.kernels.push_back({use.layer, path_of(use), use.kernel, 0, 0, 0});
      }
    }
  }
  std::sort(report_.kernels.begin(), report_.kernels.end(),
            [](const KernelUse& a, const KernelUse& b) {
              return std::tie(a.layer, a.path, a.kernel) < std::tie(b.layer, b.path, b.kernel);
            });
  report_.ops.clear();
  for (const auto& [op, time] : profile_.ops()) report_.ops.push_back({op, time.calls, time.us});
  weights::Fingerprint fingerprint = session_.text_->fingerprint();
  fingerprint.add(session_.decoder_->fingerprint());
  for (size_t i = 0; i < session_.networks_.size(); ++i) {
    if (i == 0 || checked_.guided) fingerprint.add(session_.networks_[i]->fingerprint());
  }
  report_.checkpoint = fingerprint.to_string();
  report_.linears = count_linears();
  report_.text_linears = count_of(session_.text_linears_);
  const MemoryUse memory = session_.backend_->memory();
  report_.peak_bytes = std::max(memory.peak, memory.reserved_peak);
}

LinearCount Rendering::count_linears() const {
  LinearUses linears = profile_.linears();
  for (size_t i = 0; i < session_.prepared_.size(); ++i) {
    if (i > 0 && !checked_.guided) break;
    const auto add = [&](const auto& kept) {
      if (kept) linears.insert(kept->linears.begin(), kept->linears.end());
    };
    add(session_.prepared_[i]);
    add(session_.timed_[i]);
  }
  return count_of(linears);
}

// Of every linear that no checkpoint and no family keeps in floating point.
void Rendering::check_what_ran() const {
  if (!session_.options_.model.require_int8) return;
  check_native(profile_.linears());
  if (session_.options_.model.text_encoder_linears == Linears::int8) {
    check_native(session_.text_linears_);
  }
}

Cancelled Rendering::stopped() const {
  return Cancelled(
      fmt::format("stopped on request; {} of {} pictures are complete", decoded_, job_.images));
}

size_t Rendering::elements() const {
  return static_cast<size_t>(checked_.grid.tokens() * session_.model_.decoder->latent_channels());
}

}  // namespace octet::engine
