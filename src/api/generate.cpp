// octet::generate: the public request becomes that of the pipeline, its report the public one.
#include "api/generate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "api/boundary.h"
#include "backend/host_backend.h"
#include "base/error.h"
#include "base/free_memory.h"
#include "base/invalid_request.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "devices/select.h"
#include "engine/generate.h"
#include "formats/png.h"
#include "formats/safetensors.h"
#include "formats/text.h"
#include "hub/cache.h"
#include "models/ideogram4/caption.h"
#include "octet/text.h"
#include "octet/version.h"
#include "weights/random_weights.h"

namespace octet {
namespace {

// One of two words.
bool is_first(const char* what, const std::string& word, const char* first, const char* second) {
  check(word == first || word == second, "{}: {} is unknown, expected {} or {}", what,
        in_quotes(word), first, second);
  return word == first;
}

std::vector<float> read_noise(const std::string& path) {
  const SafetensorsFile file(path);
  check(file.tensors().size() == 1, "{}: holds {} tensors, expected one: the noise", path,
        file.tensors().size());
  const TensorInfo& info = file.tensors().front();
  FileShape shape = info.shape;
  if (shape.size() == 3 && shape.front() == 1) shape.erase(shape.begin());
  check(info.dtype == DType::f32 && shape.size() == 2,
        "{}: tensor {} is {} {}, expected F32 [tokens, channels]", path, in_quotes(info.name),
        name_of(info.dtype), to_string(info.shape));
  const auto bytes = file.bytes(info.name);
  std::vector<float> noise(bytes.size() / sizeof(float));
  if (!noise.empty()) std::memcpy(noise.data(), bytes.data(), bytes.size());
  file.check_intact();
  return noise;
}

// A wrong request is refused before anybody looks for the model.
void check_schedule(const engine::GenerateRequest& request) {
  ideogram4::ScheduleRequest schedule = request.schedule;
  schedule.width = request.size.width;
  schedule.height = request.size.height;
  make_schedule(schedule);
}

engine::GenerateRequest to_pipeline(const GenerateRequest& request) {
  engine::GenerateRequest made;
  made.size = models::parse_image_size(request.size);
  made.schedule.preset = ideogram4::preset_named(request.preset);
  made.schedule.steps = request.steps;
  made.schedule.guidance = request.guidance;
  check_schedule(made);
  made.convention = ideogram4::convention_named(request.convention);
  made.seed = request.seed;
  if (!request.noise_file.empty()) made.noise = read_noise(request.noise_file);
  made.images = request.images;
  made.int8 = is_first("linears", request.linears, "int8", "float");
  made.require_int8 = request.require_int8;
  check_value(made.int8 || !made.require_int8,
              "--require-int8: the transformers' linears were asked for in floating point; leave "
              "--linears out");
  made.caption =
      ideogram4::caption_for_model(request.caption, request.caption_name, request.any_caption);
  for (const std::string& lora : request.loras) {
    made.loras.push_back(weights::parse_lora_request(lora));
  }
  made.keep_converted = request.cache_weights;
  const bool guided = is_guided(made.schedule);
  // Without guidance it is not opened, so it need not have been pulled either.
  const std::string unconditional =
      guided ? hub::find_model(request.unconditional) : request.unconditional;
  made.folders = ideogram4::find_folders({.model = hub::find_model(request.model),
                                          .unconditional = unconditional,
                                          .text_encoder = hub::find_model(request.text_encoder),
                                          .vae = hub::find_model(request.vae),
                                          .tokenizer = hub::find_model(request.tokenizer),
                                          .base = hub::find_model(request.base),
                                          .fallback = hub::find_model(request.fallback),
                                          .guided = guided});
  // Before a warning about it.
  check_image_size(made.size, engine::size_limits(made.folders, made.convention));
  if (request.on_latent) {
    made.on_latent = [&request](int image, const engine::SamplerStep& step) {
      request.on_latent({image, step.done, step.total, step.velocity, step.latent});
    };
  }
  return made;
}

// On a host backend the transformers lie in the host's memory; a GPU says itself when it is full.
void check_memory(const Backend& backend, const engine::GenerateRequest& request, DType dtype) {
  if (!keeps_data_on_host(backend)) return;
  weights::WeightCount weights(dtype, request.int8);
  for (const bool conditional : {true, false}) {
    if (!conditional && !is_guided(request.schedule)) continue;
    ideogram4::Dit dit;
    dit.config = ideogram4::find_dit_config(
        conditional ? request.folders.transformer : request.folders.unconditional, conditional);
    visit_weights(dit, conditional, weights);
  }
  check_free_memory("generate: the transformers", static_cast<double>(weights.bytes()));
}

struct StageWords {
  const char* stage;
  const char* unit;
};

StageWords words_of(engine::Stage stage) {
  switch (stage) {
    case engine::Stage::text: return {"text", "layers"};
    case engine::Stage::load: return {"load", "bytes"};
    case engine::Stage::denoise: return {"denoise", "steps"};
    case engine::Stage::decode: return {"decode", "images"};
  }
  return {"", ""};
}

void log_warnings(const GenerateRequest& request, const engine::GenerateRequest& inner) {
  ideogram4::log_caption_warnings(request.caption, request.caption_name, request.any_caption);
  const auto limits = engine::size_limits(inner.folders, inner.convention);
  const std::string about_size = models::size_warning(inner.size, limits);
  if (!about_size.empty()) log::warning("{}", about_size);
}

GenerateReport to_public(const engine::GenerateReport& from, const engine::GenerateRequest& request,
                         const Backend& backend, const std::string& dtype) {
  GenerateReport report;
  report.device = backend.description();
  report.width = request.size.width;
  report.height = request.size.height;
  report.caption = request.caption;
  report.text_tokens = static_cast<int>(from.text_tokens);
  report.steps = from.steps;
  report.checkpoint = from.checkpoint;
  for (const auto& use : from.kernels) {
    const nn::OpTime& time = use.time;
    report.kernels.push_back({use.layer, use.op == "gemm" ? "int8" : dtype, use.kernel, time.calls,
                              time.us, time.us > 0 ? time.operations / time.us * 1e-6 : 0});
  }
  for (const auto& [op, time] : from.ops) report.ops.push_back({op, time.calls, time.us});
  report.text_s = from.text_s;
  report.load_s = from.load_s;
  report.denoise_s = from.denoise_s;
  report.decode_s = from.decode_s;
  report.peak_bytes = std::max(from.memory.peak, from.memory.reserved_peak);
  return report;
}

// "attention.qkv int8 sm90_...; ...": which kernels made a picture. Not how often they ran, which
// counts the pictures before it: rendered alone it is the same file.
std::string kernel_summary(const GenerateReport& report) {
  std::string text;
  for (const KernelUse& use : report.kernels) {
    if (!text.empty()) text += "; ";
    text +=
        fmt::format("{} {}{}{}", use.layer, use.path, use.kernel.empty() ? "" : " ", use.kernel);
  }
  return text;
}

Picture to_picture(const engine::GeneratedImage& image, const GenerateRequest& request,
                   const GenerateReport& report) {
  Picture picture;
  picture.index = image.index;
  picture.seed = image.seed;
  picture.width = image.size.width;
  picture.height = image.size.height;
  picture.rgb = image.pixels;
  picture.metadata = {
      {"Software", fmt::format("Octet {} ({})", version(), commit())},
      {"caption", report.caption},
      request.noise_file.empty()
          ? std::pair<std::string, std::string>{"seed", std::to_string(image.seed)}
          : std::pair<std::string, std::string>{"noise", printable(request.noise_file)},
      {"preset", request.preset},
      {"steps", std::to_string(report.steps)},
      {"guidance",
       request.guidance.empty() ? "preset" : fmt::format("{}", fmt::join(request.guidance, ","))},
      {"checkpoint", report.checkpoint},
      {"device", report.device},
      {"linears", request.linears},
      {"loras", request.loras.empty()
                    ? "none"
                    : printable(fmt::format("{}", fmt::join(request.loras, ", ")))},
      {"dtype", request.dtype},
      {"convention", request.convention},
      {"kernels", kernel_summary(report)},
  };
  return picture;
}

// Where a request runs, and what of it has been checked.
struct Job {
  explicit Job(const GenerateRequest& request)
      : dtype(is_first("dtype", request.dtype, "bf16", "f32") ? DType::bf16 : DType::f32),
        inner(to_pipeline(request)),
        backend(select_backend({.device = request.device,
                                .threads = request.threads,
                                .tune = tune::parse_tune_mode(request.tune)})),
        pool(request.threads),
        ctx{*backend, dtype} {
    check_memory(*backend, inner, dtype);
  }

  DType dtype;
  engine::GenerateRequest inner;
  std::unique_ptr<Backend> backend;
  ThreadPool pool;
  nn::Context ctx;
};

GenerateReport run(Job& job, const GenerateRequest& request, const OnGenerateStep& on_step,
                   const std::function<void(const Picture&)>& on_picture) {
  const auto tell = [&](const engine::GenerateProgress& progress) {
    const auto [stage, unit] = words_of(progress.stage);
    return !on_step || on_step({stage, unit, progress.done, progress.total, progress.seconds});
  };
  const auto report_of = [&](const engine::GenerateReport& report) {
    return to_public(report, job.inner, *job.backend, request.dtype);
  };
  const auto hand_over = [&](const engine::GeneratedImage& image,
                             const engine::GenerateReport& so_far) {
    on_picture(to_picture(image, request, report_of(so_far)));
  };
  return report_of(engine::generate(job.ctx, job.pool, job.inner, tell, hand_over));
}

}  // namespace

engine::LatentShape check_request(const GenerateRequest& request, bool warn) {
  Job job(request);
  const engine::LatentShape shape = engine::check_request(job.ctx, job.pool, job.inner);
  if (warn) log_warnings(request, job.inner);
  return shape;
}

GenerateReport generate_checked(const GenerateRequest& request, const OnGenerateStep& on_step,
                                const std::function<void(const Picture&)>& on_picture) {
  Job job(request);
  return run(job, request, on_step, on_picture);
}

GenerateReport generate(const GenerateRequest& request, const OnGenerateStep& on_step,
                        const std::function<void(const Picture&)>& on_picture) try {
  check(on_picture != nullptr, "generate: nobody takes the pictures; expected a function");
  Job job(request);
  log_warnings(request, job.inner);
  return run(job, request, on_step, on_picture);
} catch (...) {
  api::rethrow_as_error();
}

std::vector<PresetInfo> list_presets() try {
  std::vector<PresetInfo> list;
  for (const ideogram4::Preset& preset : ideogram4::presets()) {
    list.push_back({std::string(preset.name), std::string(preset.official_name), preset.steps});
  }
  return list;
} catch (...) {
  api::rethrow_as_error();
}

void write_picture(const std::string& path, const Picture& picture) try {
  std::vector<PngText> texts;
  for (const auto& [key, text] : picture.metadata) texts.push_back({key, text});
  write_png(path, {picture.rgb, picture.width, picture.height, 3}, texts);
} catch (...) {
  api::rethrow_as_error();
}

}  // namespace octet
