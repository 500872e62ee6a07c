// Loading and rendering for octet/octet.h: structs of octet/engine.h become those of C.
#include "api/c_engine.h"

#include <memory>

namespace octet::c_api {
namespace {

octet_progress progress_of(const RenderProgress& from) {
  return {.struct_size = sizeof(octet_progress),
          .done = from.done,
          .total = from.total,
          .seconds = from.seconds,
          .eta_s = from.eta_s,
          .stage = static_cast<int32_t>(from.stage),
          .fraction = from.fraction};
}
static_assert(static_cast<int>(Stage::text) == OCTET_STAGE_TEXT);
static_assert(static_cast<int>(Stage::load) == OCTET_STAGE_LOAD);
static_assert(static_cast<int>(Stage::denoise) == OCTET_STAGE_DENOISE);
static_assert(static_cast<int>(Stage::decode) == OCTET_STAGE_DECODE);

octet_preview preview_of(const Preview& from) {
  return {.struct_size = sizeof(octet_preview),
          .rgb = from.rgb.data(),
          .width = from.width,
          .height = from.height,
          .image = from.image,
          .step = from.step,
          .steps = from.steps};
}

// `metadata` holds what the struct points to.
octet_picture picture_of(const Picture& from, std::vector<octet_pair>& metadata) {
  for (const auto& [key, value] : from.metadata) metadata.push_back({key.c_str(), value.c_str()});
  return {.struct_size = sizeof(octet_picture),
          .rgb = from.rgb.data(),
          .width = from.width,
          .height = from.height,
          .seed = from.seed,
          .metadata = metadata.data(),
          .metadata_count = metadata.size(),
          .index = from.index};
}

octet_report report_of(const RenderReport& from) {
  return {.peak_bytes = from.peak_bytes,
          .text_s = from.text_s,
          .load_s = from.load_s,
          .denoise_s = from.denoise_s,
          .decode_s = from.decode_s,
          .width = from.width,
          .height = from.height,
          .text_tokens = from.text_tokens,
          .steps = from.steps,
          .text_cached = from.text_cached ? 1 : 0,
          .linears_int8 = from.linears.int8,
          .linears_protected = from.linears.protected_,
          .linears_kept = from.linears.kept,
          .linears_float = from.linears.floating,
          .text_linears_int8 = from.text_linears.int8,
          .warnings = static_cast<int32_t>(from.warnings.size())};
}

OnRenderProgress told_by(octet_on_progress progress, void* user) {
  if (progress == nullptr) return {};
  return [progress, user](const RenderProgress& step) {
    const octet_progress given = progress_of(step);
    return progress(user, &given) == 0;
  };
}

void load(Engine& engine, const octet_options& given, octet_on_progress progress, void* user) {
  engine.load(options_of(given), told_by(progress, user), flag_of(given.lazy, "lazy"),
              token_of(given.stop));
}

// The callbacks of one render. Any callback in C may end the work, but of the engine's only
// `progress` can: it passes on what the others answered.
class Callbacks {
 public:
  explicit Callbacks(const octet_callbacks* given)
      : given_(given != nullptr ? read_struct(given, "callbacks") : octet_callbacks{}) {
    check_reserved(given_.reserved);
    check_value(given_.preview_every >= 0, "preview_every",
                "`preview_every` is {}, expected 0 or more", given_.preview_every);
  }

  RenderCallbacks for_engine() {
    RenderCallbacks made;
    made.progress = [this,
                     progress = told_by(given_.progress, given_.user)](const RenderProgress& step) {
      if (progress && !progress(step)) stopped_ = true;
      return !stopped_;
    };
    if (given_.preview != nullptr) {
      made.preview = [this](const Preview& from) {
        const octet_preview preview = preview_of(from);
        if (given_.preview(given_.user, &preview) != 0) stopped_ = true;
      };
    }
    if (given_.picture != nullptr) {
      made.picture = [this](const Picture& from) {
        std::vector<octet_pair> metadata;
        const octet_picture picture = picture_of(from, metadata);
        if (given_.picture(given_.user, &picture) != 0) stopped_ = true;
      };
    }
    if (given_.preview_every != 0) made.preview_every = given_.preview_every;
    if (given_.warning != nullptr) {
      made.warning = [this](const std::string& sentence) {
        given_.warning(given_.user, sentence.c_str());
      };
    }
    return made;
  }

  // For an answer that came after the engine's last call of `progress`.
  void check_stopped() const {
    if (stopped_) throw Cancelled("render: stopped by a callback");
  }

 private:
  octet_callbacks given_;
  bool stopped_ = false;
};

// `what` is a request or a job.
template <class What>
void render(Engine& engine, const What& what, const octet_callbacks* callbacks,
            octet_report* report) {
  if (report != nullptr) check_struct(report, "report");
  Callbacks told(callbacks);
  const RenderReport done = engine.render(what, told.for_engine());
  if (report != nullptr) write_struct(report_of(done), report);
  told.check_stopped();
}

}  // namespace
}  // namespace octet::c_api

namespace c_api = octet::c_api;

octet_status octet_engine_create(const octet_options* options, octet_on_progress progress,
                                 void* user, octet_engine** engine) {
  if (engine != nullptr) *engine = nullptr;
  return c_api::guarded([&] {
    c_api::check_given(engine, "engine");
    const octet_options given = c_api::read_struct(options, "options");
    auto made = std::make_unique<octet_engine>();
    c_api::load(made->engine, given, progress, user);
    *engine = made.release();
  });
}

octet_status octet_engine_load(octet_engine* engine, const octet_options* options,
                               octet_on_progress progress, void* user) {
  return c_api::guarded_on(engine, [&](octet::Engine& on) {
    c_api::load(on, c_api::read_struct(options, "options"), progress, user);
  });
}

octet_status octet_engine_unload(octet_engine* engine) {
  return c_api::guarded_on(engine, [&](octet::Engine& on) { on.unload(); });
}

octet_status octet_engine_render(octet_engine* engine, const octet_request* request,
                                 const octet_callbacks* callbacks, octet_report* report) {
  return c_api::guarded_on(engine, [&](octet::Engine& on) {
    const octet_request given = c_api::read_struct(request, "request");
    c_api::render(on, c_api::request_of(given), callbacks, report);
  });
}

octet_status octet_engine_render_job(octet_engine* engine, const octet_job* job,
                                     const octet_callbacks* callbacks, octet_report* report) {
  return c_api::guarded_on(engine, [&](octet::Engine& on) {
    c_api::check_given(job, "job");
    c_api::render(on, job->job, callbacks, report);
  });
}

octet_status octet_engine_check(octet_engine* engine, const octet_request* request) {
  return c_api::guarded_on(engine, [&](octet::Engine& on) {
    on.check(c_api::request_of(c_api::read_struct(request, "request")));
  });
}

octet_status octet_engine_warm_up(octet_engine* engine, int32_t width, int32_t height,
                                  int32_t previews, octet_stop* stop) {
  return c_api::guarded_on(engine, [&](octet::Engine& on) {
    on.warm_up({width, height}, c_api::flag_of(previews, "previews"), c_api::token_of(stop));
  });
}

octet_status octet_engine_set_loras(octet_engine* engine, const octet_lora* loras,
                                    size_t lora_count, octet_on_progress progress, void* user) {
  return c_api::guarded_on(engine, [&](octet::Engine& on) {
    on.set_loras(c_api::loras_of(loras, lora_count), c_api::told_by(progress, user));
  });
}

void octet_engine_cancel(octet_engine* engine) {
  if (engine != nullptr) engine->engine.cancel();
}
