#include "engine/rendering.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <tuple>
#include <utility>

#include "backend/host_backend.h"
#include "base/error.h"
#include "base/invalid_request.h"
#include "base/out_of_memory.h"
#include "engine/decoding.h"
#include "engine/noise.h"
#include "engine/pixels.h"
#include "engine/residency.h"
#include "engine/text_encoding.h"
#include "models/footprint.h"

namespace octet::engine {
Rendering::Rendering(Session& session, const Job& job, const SessionCallbacks& callbacks)
    : session_(session),
      job_(job),
      callbacks_(callbacks),
      profile_(session.backend()),
      ctx_(session.context()),
      branches_(session, job, ctx_, profile_) {
  ctx_.profile = &profile_;
  for (const auto& backend : session_.backends()) backend->reset_peak();
  report_.device = session_.device_text();
  report_.width = job.size().width;
  report_.height = job.size().height;
  report_.caption = job.asked.prompt;
  report_.negative = job.asked.negative;
  report_.preset = job.asked.schedule.preset.name;
  report_.text_tokens = static_cast<int>(job.tokens.size());
  report_.steps = job.schedule().steps();
  report_.warnings = job.warnings;
  report_.places = text_of(session.plan());
}

RenderReport Rendering::run() {
  auto seconds_since = [this, before = 0.0]() mutable {
    const double now = watch_.microseconds() * 1e-6;
    return now - std::exchange(before, now);
  };
  std::exception_ptr interruption;
  try {
    prepare(encode_texts());
    report_.load_s = seconds_since() - report_.text_s;
    try {
      denoise();
    } catch (...) {
      // What is complete is worth a picture, also when the user stops at the ninth of ten; but
      // somebody who calls cancel() does not want to wait.
      if (latents_.empty() || session_.is_stopped()) throw;
      interruption = std::current_exception();
    }
    report_.denoise_s = seconds_since() - report_.decode_s - report_.ahead_s;
    branches_.keep_times();
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
  // Also when all pictures were delivered: whoever cancels a call that runs is told so.
  if (stop_after_decoding_ || session_.is_stopped()) throw stopped();
  if (!interruption) {
    warn_of_memory();
    return report_;
  }
  try {
    std::rethrow_exception(interruption);
  } catch (const Cancelled&) {
    throw stopped();
  }
}

// Another program may have taken memory since the plan was made: then more of the model stays with
// the host.
void Rendering::prepare(const BranchTexts& texts) try {
  make_preview_map();
  branches_.prepare(texts, callbacks_.progress);
  warn_of_rows();
} catch (const OutOfMemory& error) {
  branches_.end();
  if (!session_.gives_way()) throw;
  report_.places = text_of(session_.plan());
  report_.warnings.push_back(
      sentence("there was less free memory than when the model was opened ({}); now: {}",
               error.sentence(), report_.places));
  make_preview_map();
  branches_.prepare(texts, callbacks_.progress);
  warn_of_rows();
}

void Rendering::warn_of_rows() {
  if (ctx_.rows_at_once == 0) return;
  report_.warnings.push_back(
      sentence("memory is too short for whole passes: they work on {} rows at a time, which is "
               "slower{}",
               ctx_.rows_at_once,
               keeps_data_on_host(ctx_.backend) ? "" : " and may change the picture by roundings"));
}

void Rendering::end_use() {
  session_.text().end_use();
  session_.for_each_network([](PartStore& store) { store.end_use(); });
  session_.decoder().end_use();
}

// --- texts ---

BranchTexts Rendering::encode_texts() {
  const double begun = watch_.microseconds();
  report_.text_cached = true;
  const BranchTexts texts{encode(job_.tokens), encode(job_.negative_tokens)};
  report_.text_s = (watch_.microseconds() - begun) * 1e-6;
  if (callbacks_.text) {
    const int64_t channels = session_.model().text_encoder->feature_count();
    const auto& features = texts.prompt->features;
    callbacks_.text({std::ssize(features) / channels, channels, features});
  }
  return texts;
}

// Without tokens there are no features.
PromptCache::Text Rendering::encode(const PromptCache::Tokens& tokens) {
  if (tokens.empty()) return std::make_shared<const EncodedText>();
  PromptCache::Text text = session_.kept().prompts.find(tokens);
  if (text == nullptr) {
    report_.text_cached = false;
    text = encode_text(session_, ctx_, tokens, callbacks_.progress);
  }
  const TextRecord& ran = text->record;
  texts_ran_.kernels.insert(texts_ran_.kernels.end(), ran.kernels.begin(), ran.kernels.end());
  texts_ran_.linears.insert(ran.linears.begin(), ran.linears.end());
  return text;
}

// --- steps ---

void Rendering::denoise() {
  Sampler sampler(ctx_, job_.schedule(), session_.family().branches, job_.grid.tokens(),
                  session_.model().decoder->latent_channels());
  for (int image = 0; image < job_.request.images; ++image) {
    std::vector<float> noise = job_.request.noise;
    if (noise.empty())
      noise = make_noise(seed_of(job_.request.seed, image), /*image=*/0, job_.elements(),
                         &session_.backend().pool());
    latents_.push_back(sampler.run(
        noise,
        [&](const auto&... step) {
          if (branches_.velocities(step...)) ++report_.recorded_steps;
        },
        [&](const SamplerStep& step) {
          on_step(image, step);
          return true;
        }));
    // The last one is left to decode_waiting(), which reports progress.
    if (image + 1 < job_.request.images && has_room_to_decode()) decode(image);
  }
}

// Next to the networks. If there is no room, pictures wait until the networks are released.
bool Rendering::has_room_to_decode() const {
  return session_.decoder().stays() && image_bound(session_, job_.grid, ctx_.dtype) == 0;
}

void Rendering::on_step(int image, const SamplerStep& step) {
  branches_.collect();
  if (step.done == 1 && image == 0) check_what_ran();
  if (step.done > 0 && (callbacks_.latent || shows_preview(step))) show_step(image, step);
  tell({.stage = Stage::denoise,
        .done = int64_t{image} * step.total + step.done,
        .total = int64_t{job_.request.images} * step.total,
        .seconds = step.seconds,
        .eta_s = eta_s(image, step)});
  if (step.done > 0 && step.done < step.total) encode_upcoming();
  refine(step);
}

// Devices are refined one after the other, and the others wait.
void Rendering::refine(const SamplerStep& step) {
  constexpr double kShareOfStep = 0.02;
  const double seconds = kShareOfStep * step.seconds / static_cast<double>(session_.device_count());
  for (const auto& backend : session_.backends()) backend->refine(seconds);
}

void Rendering::encode_upcoming() {
  if (knows_upcoming_ || !callbacks_.upcoming) return;
  const std::shared_ptr<const Job> upcoming = callbacks_.upcoming();
  if (upcoming == nullptr) return;
  knows_upcoming_ = true;
  const double begun = watch_.microseconds();
  branches_.collect();  // ahead of the marks of another profile
  encode_ahead(session_, *upcoming);
  session_.backend().set_op_observer(&profile_);
  report_.ahead_s += (watch_.microseconds() - begun) * 1e-6;
}

void Rendering::show_step(int image, const SamplerStep& step) {
  std::vector<float> velocity(job_.elements()), latent(job_.elements());
  download_matrix(ctx_, step.velocity, velocity.data());
  download_matrix(ctx_, step.latent, latent.data());
  if (callbacks_.latent) callbacks_.latent({image, step.done, step.total, velocity, latent});
  if (shows_preview(step)) show_preview(image, step.done, velocity, latent);
}

bool Rendering::shows_preview(const SamplerStep& step) const {
  const int every = std::max(callbacks_.preview_every, 1);
  return callbacks_.preview && (step.done % every == 0 || step.done == step.total);
}

// Before the steps, whose memory is planned without a decoder.
void Rendering::make_preview_map() {
  auto& map = session_.kept().preview;
  if (!callbacks_.preview || map) return;
  session_.load(session_.decoder(), {});
  map.emplace(ctx_, *session_.model().decoder);
  session_.decoder().end_use();
  profile_.collect();
}

// Where the picture would be if the rest of the way were as straight as this step.
void Rendering::show_preview(int image, int done, std::span<const float> velocity,
                             std::span<const float> latent) {
  const auto& map = session_.kept().preview;
  const auto& moments = job_.schedule().times;
  const float left = moments.back() - moments[static_cast<size_t>(done)];
  std::vector<float> ahead(latent.begin(), latent.end());
  for (size_t i = 0; i < ahead.size(); ++i) ahead[i] += left * velocity[i];
  callbacks_.preview({image, done, job_.schedule().steps(), static_cast<int>(job_.grid.width),
                      static_cast<int>(job_.grid.height),
                      map->rgb(ahead, &session_.backend().pool())});
}

// By evaluations of networks: a step with fewer branches is shorter.
double Rendering::eta_s(int image, const SamplerStep& step) const {
  if (step.done == 0 && image == 0) return -1;
  const auto of_image = static_cast<double>(branches_.evaluations(step.total));
  const double done = image * of_image + static_cast<double>(branches_.evaluations(step.done));
  const double elapsed =
      watch_.microseconds() * 1e-6 - report_.text_s - report_.load_s - report_.ahead_s;
  const double each = (elapsed - report_.decode_s) / done;
  const double decode = session_.kept().times.decode_s_per_pixel * report_.width * report_.height *
                        (job_.request.images - decoded_);
  return each * (job_.request.images * of_image - done) + decode;
}

// Decodes all of them even when the user wants to stop: denoising them took far longer.
void Rendering::decode_waiting() {
  const auto total = std::ssize(latents_);
  branches_.end();
  if (session_.options().once) {
    session_.for_each_network([](PartStore& store) { store.drop(); });
    for (size_t i = 0; i < session_.device_count(); ++i) {
      session_.denoiser(i).preparations.forget();
    }
  }
  const auto told = [&](double fraction) {
    if (session_.is_stopped()) throw stopped();
    const bool goes_on =
        !callbacks_.progress ||
        callbacks_.progress(
            {.stage = Stage::decode, .done = decoded_, .total = total, .fraction = fraction});
    stop_after_decoding_ = stop_after_decoding_ || !goes_on;
  };
  told(0);
  while (decoded_ < total) {
    decode(decoded_, told);
    told(0);
  }
}

void Rendering::decode(int index, const std::function<void(double)>& progress) {
  const double begun = watch_.microseconds();
  decoding_failed_ = true;  // until it has succeeded
  session_.load(session_.decoder(), {});
  std::vector<float>& latent = latents_[static_cast<size_t>(index)];
  RenderedImage image;
  image.index = index;
  image.seed = seed_of(job_.request.seed, index);
  image.rgb = to_bytes(decode_within_memory(session_, ctx_, latent, job_.grid, progress),
                       &session_.backend().pool());
  image.latent = std::move(latent);
  const double seconds = (watch_.microseconds() - begun) * 1e-6;
  report_.decode_s += seconds;
  session_.kept().times.decode_s_per_pixel =
      seconds / (static_cast<double>(report_.width) * report_.height);
  collect();
  check_what_ran();
  if (session_.is_stopped()) throw stopped();
  decoding_failed_ = false;
  ++decoded_;
  if (callbacks_.image) callbacks_.image(image, report_);
}

void Rendering::collect() {
  branches_.collect();
  report_.branches = branches_.uses();
  report_.kernels.clear();
  const auto path_of = [dtype = ctx_.dtype](const nn::Profile::KernelUse& use) {
    if (use.op == "gemm") return "int8";
    if (use.op == "attention" && use.kernel.ends_with("_int8")) return "int8 scores";
    if (use.op == "attention" && use.kernel.ends_with("_int8_full")) return "int8 attention";
    return use.fake ? "fake int8" : dtype == DType::bf16 ? "bf16" : "f32";
  };
  for (const auto& use : branches_.kernels()) {
    const nn::OpTime& time = use.time;
    report_.kernels.push_back(
        {use.layer, path_of(use), use.kernel, time.calls, time.us, time.tops()});
  }
  // Results reused from earlier pictures: these kernels made them, but did not run for this one.
  const auto add_reused = [&](const KeptKernels::Kernels& kernels) {
    for (const auto& use : kernels) {
      const bool known = std::any_of(report_.kernels.begin(), report_.kernels.end(),
                                     [&](const KernelUse& row) { return row.layer == use.layer; });
      if (!known) {
        report_.kernels.push_back({use.layer, path_of(use), use.kernel, 0, 0, 0});
      }
    }
  };
  add_reused(texts_ran_.kernels);
  for (size_t i = 0; i < session_.device_count(); ++i) {
    for (const auto& [network, kernels] : session_.denoiser(i).kernels.parts()) {
      add_reused(kernels);
    }
  }
  std::sort(report_.kernels.begin(), report_.kernels.end(),
            [](const KernelUse& a, const KernelUse& b) {
              return std::tie(a.layer, a.path, a.kernel) < std::tie(b.layer, b.path, b.kernel);
            });
  report_.ops.clear();
  for (const auto& [op, time] : branches_.ops()) report_.ops.push_back({op, time.calls, time.us});
  weights::Fingerprint fingerprint = session_.text().fingerprint();
  fingerprint.add(session_.decoder().fingerprint());
  branches_.add_fingerprints(fingerprint);
  report_.checkpoint = fingerprint.to_string();
  report_.linears = count_of(branches_.linears());
  report_.text_linears = count_of(texts_ran_.linears);
  const MemoryUse memory = session_.memory();
  report_.peak_bytes = std::max(memory.peak, memory.reserved_peak);
}

// A budget is kept by keeping fewer weights. The work itself and what passes through take what they
// need.
void Rendering::warn_of_memory() {
  const uint64_t budget = session_.options().model.max_memory;
  uint64_t used = 0;  // of the device that uses most: each has the whole budget
  for (const auto& backend : session_.backends()) {
    used = std::max(used, uint64_t{backend->memory().peak});
  }
  if (budget == 0 || used <= budget) return;
  constexpr double kMegabyte = 1e6;
  report_.warnings.push_back(
      sentence("`max_memory` was not kept: it is {:.1f} MB, and the weights and the work that a "
               "picture needs at once took {:.1f} MB; set that, or a smaller `size`",
               static_cast<double>(budget) / kMegabyte, static_cast<double>(used) / kMegabyte));
}

// Every linear that neither its checkpoint nor its family keeps in floating point.
void Rendering::check_what_ran() const {
  if (!session_.options().model.require_int8) return;
  check_native(branches_.linears_now());
  if (session_.options().model.text_encoder_linears == Linears::int8) {
    check_native(texts_ran_.linears);
  }
}

Cancelled Rendering::stopped() const {
  return Cancelled(fmt::format("stopped on request; {} of {} pictures are complete", decoded_,
                               job_.request.images));
}

}  // namespace octet::engine
