#include "engine/requests.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "engine/picture_look.h"
#include "formats/text.h"
#include "hub/cache.h"
#include "octet/tools/text.h"
#include "octet/version.h"

namespace octet::engine {

ModelOptions with_paths(ModelOptions options) {
  for (std::string* model : {&options.model, &options.base, &options.fallback}) {
    *model = hub::find_model(*model);
  }
  const models::Family& family = models::family_of(options.model);
  for (auto& [name, path] : options.parts) {
    bool runs = true;
    for (size_t i = 0; i < family.networks.size(); ++i) {
      if (family.networks[i].part == name) runs = models::runs_unguided(family.branches, i);
    }
    // Without guidance the others are not opened, so they need not be pulled either.
    if (options.guided || runs) path = hub::find_model(path);
  }
  return options;
}

namespace {

// "attention.qkv int8 sm90_...; ...": which kernels made a picture. Not how often they ran, which
// depends on the pictures before it: a picture rendered alone gives the same file.
std::string kernel_summary(const RenderReport& report) {
  std::string text;
  for (const KernelUse& use : report.kernels) {
    if (!text.empty()) text += "; ";
    text +=
        fmt::format("{} {}{}{}", use.layer, use.path, use.kernel.empty() ? "" : " ", use.kernel);
  }
  return text;
}

std::string lora_list(const std::vector<Lora>& loras) {
  std::vector<std::string> texts;
  for (const Lora& lora : loras) texts.push_back(printable(to_string(lora)));
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
}

// A picture that is complete is delivered, also when its call is cancelled meanwhile.
PictureLook look_of_complete(const PixelView& picture, ThreadPool* pool) {
  try {
    return look_of(picture, pool);
  } catch (const Cancelled&) {
    return look_of(picture, nullptr);
  }
}

Picture to_picture(RenderedImage image, const Job& job, const std::vector<Lora>& loras,
                   const RenderReport& report, ThreadPool* pool) {
  const PictureRequest& request = job.request;
  const ModelOptions& options = job.model->options;
  Picture picture;
  picture.index = image.index;
  picture.seed = image.seed;
  picture.width = report.width;
  picture.height = report.height;
  picture.rgb = std::move(image.rgb);
  picture.look = look_of_complete({picture.rgb, picture.width, picture.height}, pool);
  using Entry = std::pair<std::string, std::string>;
  picture.metadata = {
      {"Software", fmt::format("Octet {} ({})", version(), commit())},
      {"caption", report.caption},
      request.noise.empty() ? Entry{"seed", std::to_string(image.seed)}
                            : Entry{"noise", printable(request.noise_name)},
      {"preset", report.preset},
      {"steps", std::to_string(report.steps)},
      {"guidance",
       request.guidance.empty() ? "preset" : fmt::format("{}", fmt::join(request.guidance, ","))},
      {"checkpoint", report.checkpoint},
      {"device", report.device},
      {"linears", word_of(options.linears)},
      {"text_encoder_linears", word_of(options.text_encoder_linears)},
      {"loras", lora_list(loras)},
      {"attention", word_of(options.attention)},
      {"dtype", word_of(options.activations)},
      {"convention", word_of(options.convention)},
      {"kernels", kernel_summary(report)},
  };
  if (!report.negative.empty()) {
    picture.metadata.insert(picture.metadata.begin() + 2, {"negative", report.negative});
  }
  return picture;
}

}  // namespace

RenderReport render(Session& session, const Job& job, const RenderCallbacks& callbacks) {
  for (const Sentence& warning : job.warnings) {
    if (callbacks.warning) callbacks.warning(warning);
  }
  SessionCallbacks inner{.progress = callbacks.progress,
                         .text = callbacks.text,
                         .preview = callbacks.preview,
                         .preview_every = callbacks.preview_every,
                         .latent = callbacks.latent};
  if (callbacks.upcoming) {
    inner.upcoming = [&] { return callbacks.upcoming().checked(); };
  }
  if (callbacks.picture) {
    inner.image = [&](const RenderedImage& image, const RenderReport& so_far) {
      callbacks.picture(
          to_picture(image, job, session.loras_of(job), so_far, &session.backend().pool()));
    };
  }
  RenderReport report = session.render(job, inner);
  for (size_t i = job.warnings.size(); i < report.warnings.size(); ++i) {  // of how it went
    if (callbacks.warning) callbacks.warning(report.warnings[i]);
  }
  return report;
}

namespace {

// The name itself for a model that has not been pulled.
std::string path_or_name(const std::string& model) {
  try {
    return hub::find_model(model);
  } catch (const Error&) {
    return model;
  }
}

// Reports what is wrong with a request before what is wrong with the model.
ModelOptions resolved(ModelOptions model, const std::vector<PictureRequest>& requests) {
  const std::string path = path_or_name(model.model);
  const models::Family& family = models::family_of(path);
  const models::PictureDefaults defaults =
      models::defaults_of(family, {path, path_or_name(model.base), path_or_name(model.fallback)});
  bool guided = false;
  for (const PictureRequest& request : requests) {
    const Asked asked = asked_of(family, defaults, request, model.convention);
    for (const float by : asked.steps.guidance) guided = guided || by != 1;
  }
  model.guided = model.guided && guided;
  return with_paths(std::move(model));
}

}  // namespace

RequestSession::RequestSession(const ModelOptions& model, std::vector<PictureRequest> requests)
    : model_(resolved(model, requests)),
      requests_(std::move(requests)),
      session_(std::make_unique<Session>(
          SessionOptions{.model = model_,
                         .once = requests_.size() == 1,
                         .size = requests_.empty() ? PictureSize{} : requests_.front().size},
          stop_)) {}

RequestSession::~RequestSession() = default;

CheckedRequests RequestSession::check(bool warn) {
  CheckedRequests checked{.model = model_};
  for (const PictureRequest& request : requests_) {
    const auto job = make_job(session_->facts(), request);
    checked.latents = job->latents();
    checked.text_bytes += job->tokens.size() * sizeof(float) *
                          static_cast<uint64_t>(session_->model().text_encoder->feature_count());
    checked.size = job->size();
    checked.schedule = job->schedule();
    // Warnings about the size apply to all of them, and are logged once.
    const bool is_last = &request == &requests_.back();
    for (const Sentence& warning : is_last ? job->warnings : job->asked.warnings) {
      if (warn) log::warning("{}", warning);
    }
  }
  return checked;
}

RenderReport RequestSession::run(size_t request, const RenderCallbacks& callbacks) {
  const auto job = make_job(session_->facts(), requests_.at(request));
  const std::stop_callback stopping(job->request.stop, [this] { stop_ = true; });
  if (callbacks.plan) {
    session_->fit(*job);
    callbacks.plan(session_->info());
  }
  return render(*session_, *job, callbacks);
}

}  // namespace octet::engine
