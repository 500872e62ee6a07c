// octet::Engine: a session behind a lock, in public types.
#include "octet/engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "api/engine.h"
#include "base/error.h"
#include "base/log.h"
#include "formats/boundary.h"
#include "formats/text.h"
#include "hub/cache.h"
#include "measure/picture_look.h"
#include "octet/lora.h"
#include "octet/tools/text.h"
#include "octet/version.h"

namespace octet {
namespace api {

ModelOptions with_paths(ModelOptions options) {
  for (std::string* model : {&options.model, &options.base, &options.fallback}) {
    *model = hub::find_model(*model);
  }
  const auto networks = models::family_of(options.model).networks;
  for (auto& [name, path] : options.parts) {
    const auto is_this = [&](const models::NetworkInfo& network) { return network.part == name; };
    // Without guidance it is not opened, so it need not have been pulled either.
    const bool guides = std::any_of(networks.begin() + 1, networks.end(), is_this);
    if (options.guided || !guides) path = hub::find_model(path);
  }
  return options;
}

engine::RenderJob job_of(const models::Family& family, const models::PictureDefaults& defaults,
                         const PictureRequest& request, const ModelOptions& options, bool warn) {
  engine::RenderJob job;
  job.schedule = {.preset = models::preset_named(defaults.presets, request.preset),
                  .size = models::size_or_default(request.size, defaults),
                  .steps = request.steps,
                  .guidance = request.guidance,
                  .convention = options.convention};
  family.make_schedule(job.schedule);  // a wrong request is refused before anybody looks for more
  models::PromptText prompt =
      family.read_prompt(request.caption, request.caption_name, request.any_caption);
  job.prompt = std::move(prompt.text);
  job.seed = request.seed;
  job.images = request.images;
  job.noise = request.noise;
  for (const std::string& warning : prompt.warnings) {
    if (warn) log::warning("{}", warning);
  }
  return job;
}

engine::RenderJob job_of(const engine::Session& session, const PictureRequest& request,
                         const ModelOptions& options, bool warn) {
  return job_of(session.family(), session.defaults(), request, options, warn);
}

}  // namespace api

namespace {

// "attention.qkv int8 sm90_...; ...": which kernels made a picture. Not how often they ran, which
// counts the pictures before it: rendered alone it is the same file.
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

Picture to_picture(engine::RenderedImage image, const PictureRequest& request,
                   const ModelOptions& options, const RenderReport& report) {
  Picture picture;
  picture.index = image.index;
  picture.seed = image.seed;
  picture.width = report.width;
  picture.height = report.height;
  picture.rgb = std::move(image.rgb);
  picture.look = measure::look_of({picture.rgb, picture.width, picture.height});
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
      {"loras", lora_list(options.loras)},
      {"dtype", word_of(options.activations)},
      {"convention", word_of(options.convention)},
      {"kernels", kernel_summary(report)},
  };
  return picture;
}

}  // namespace

struct Engine::State {
  // For the time of a call. Callbacks run inside of one, and may not begin another.
  class Call {
   public:
    explicit Call(State& state) : state_(state) {
      octet::check(
          state.caller.load() != std::this_thread::get_id(),
          "engine: a callback calls the engine that called it, expected cancel() or info() alone");
      state.mutex.lock();
      state.caller = std::this_thread::get_id();
      state.stop = false;
    }
    ~Call() {
      try {
        state_.publish();
      } catch (...) {  // what it last told still stands
      }
      state_.caller = std::thread::id();
      state_.mutex.unlock();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    State& state_;
  };

  static State& of(const Engine& engine) {
    octet::check(engine.state_ != nullptr, "engine: it was moved from");
    return *engine.state_;
  }

  engine::Session& loaded() {
    octet::check(session != nullptr, "engine: no model is loaded; call load() first");
    return *session;
  }
  // What info() tells, which does not wait for a call.
  void publish() {
    const std::lock_guard lock(info_mutex);
    published = session ? std::optional(session->info()) : std::nullopt;
  }

  std::mutex mutex;
  std::atomic<std::thread::id> caller{};
  std::atomic<bool> stop{false};
  ModelOptions options;
  std::unique_ptr<engine::Session> session;
  std::mutex info_mutex;
  std::optional<EngineInfo> published;
};

Engine::Engine() try : state_(std::make_unique<State>()) {
} catch (...) {
  rethrow_as_error();
}

Engine::Engine(const ModelOptions& options, const OnRenderProgress& progress) : Engine() {
  load(options, progress);
}

Engine::~Engine() = default;
Engine::Engine(Engine&& other) noexcept = default;
Engine& Engine::operator=(Engine&& other) noexcept = default;

void Engine::load(const ModelOptions& options, const OnRenderProgress& progress, bool lazy) try {
  State& state = State::of(*this);
  const State::Call call(state);
  state.session.reset();
  state.options = options;
  auto session = std::make_unique<engine::Session>(
      engine::SessionOptions{.model = api::with_paths(options)}, state.stop);
  if (!lazy) session->load(progress);
  state.session = std::move(session);
} catch (...) {
  rethrow_as_error();
}

void Engine::unload() try {
  State& state = State::of(*this);
  const State::Call call(state);
  state.session.reset();
} catch (...) {
  rethrow_as_error();
}

bool Engine::is_loaded() const {
  if (!state_) return false;
  const std::lock_guard lock(state_->info_mutex);
  return state_->published.has_value();
}

RenderReport Engine::render(const PictureRequest& request, const RenderCallbacks& callbacks) try {
  State& state = State::of(*this);
  const State::Call call(state);
  engine::Session& session = state.loaded();
  return api::render(session, request, state.options, callbacks, /*warn=*/true);
} catch (...) {
  rethrow_as_error();
}

LatentShape Engine::check(const PictureRequest& request) try {
  State& state = State::of(*this);
  const State::Call call(state);
  engine::Session& session = state.loaded();
  return session.check(api::job_of(session, request, state.options, /*warn=*/false));
} catch (...) {
  rethrow_as_error();
}

void Engine::set_loras(const std::vector<Lora>& loras, const OnRenderProgress& progress) try {
  State& state = State::of(*this);
  const State::Call call(state);
  state.loaded().set_loras(loras, progress);
  state.options.loras = loras;
} catch (...) {
  rethrow_as_error();
}

void Engine::cancel() noexcept {
  if (state_) state_->stop = true;
}

EngineInfo Engine::info() const try {
  octet::check(state_ != nullptr, "engine: it was moved from");
  const std::lock_guard lock(state_->info_mutex);
  octet::check(state_->published.has_value(), "engine: no model is loaded; call load() first");
  return *state_->published;
} catch (...) {
  rethrow_as_error();
}

namespace api {

RenderReport render(engine::Session& session, const PictureRequest& request,
                    const ModelOptions& options, const RenderCallbacks& callbacks, bool warn) {
  const engine::RenderJob job = job_of(session, request, options, warn);
  session.check(job);
  if (warn) log_size_warning(session, job.schedule.size);
  engine::SessionCallbacks inner{.progress = callbacks.progress,
                                 .text = callbacks.text,
                                 .preview = callbacks.preview,
                                 .latent = callbacks.latent};
  if (callbacks.picture) {
    inner.image = [&](const engine::RenderedImage& image, const RenderReport& so_far) {
      callbacks.picture(to_picture(image, request, options, so_far));
    };
  }
  return session.render(job, inner);
}

void log_size_warning(const engine::Session& session, PictureSize size) {
  const std::string about_size = models::size_warning(size, session.model().sizes);
  if (!about_size.empty()) log::warning("{}", about_size);
}

}  // namespace api
}  // namespace octet
