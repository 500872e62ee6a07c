// The engine of octet/octet.h: structs of C become those of octet/engine.h, and back.
#include <fmt/ranges.h>

#include <iterator>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "api/c_api.h"
#include "octet/engine.h"

struct octet_engine {
  octet::Engine engine;
};

struct octet_stop {
  std::stop_source source;
};

namespace octet::c_api {
namespace {

// What an enumerator of C, 0 and up, stands for.
template <class T, size_t N>
T choice(const T (&choices)[N], int32_t given, const char* field) {
  check_value(given >= 0 && static_cast<size_t>(given) < N, field, "`{}` is {}, expected 0 to {}",
              field, given, N - 1);
  return choices[given];
}

constexpr Linears kLinears[] = {Linears::int8, Linears::floating, Linears::automatic};
constexpr Linears kTextLinears[] = {Linears::floating, Linears::int8};
constexpr AttentionMode kAttentions[] = {AttentionMode::automatic, AttentionMode::floating,
                                         AttentionMode::int8, AttentionMode::int8_full};
constexpr Tuning kTunings[] = {Tuning::missing, Tuning::off, Tuning::all};
constexpr Convention kConventions[] = {Convention::official, Convention::diffusers};
constexpr Residency kResidencies[] = {Residency::device, Residency::host, Residency::streamed};

Activations activations_of(octet_dtype dtype) {
  check_value(dtype == 0 || dtype == OCTET_BF16 || dtype == OCTET_F32, "activations",
              "`activations` is {}, expected OCTET_BF16 or OCTET_F32", dtype);
  return dtype == OCTET_F32 ? Activations::f32 : Activations::bf16;
}

// A field that a later version may give a meaning.
void check_reserved(int32_t reserved) {
  check_value(reserved == 0, "reserved", "`reserved` is {}, expected 0", reserved);
}

std::vector<Lora> loras_of(const octet_lora* loras, size_t count) {
  std::vector<Lora> made;
  for (const octet_lora& lora : list_of(loras, count, "loras")) {
    check_value(lora.file != nullptr, "loras", "`file` of one of the `loras` is NULL");
    Lora& one = made.emplace_back();
    one.file = lora.file;
    one.strength = lora.strength;
    for (const char* network : list_of(lora.networks, lora.network_count, "networks")) {
      check_value(network != nullptr, "networks", "one of the `networks` of a LoRA is NULL");
      one.networks.emplace_back(network);
    }
  }
  return made;
}

ModelOptions options_of(const octet_options& given) {
  check_reserved(given.reserved);
  check_given(given.model, "model");
  check_value(given.threads >= 0, "threads", "`threads` is {}, expected 0 or more", given.threads);
  ModelOptions made;
  made.model = given.model;
  made.base = text_or(given.base);
  made.fallback = text_or(given.fallback);
  for (const octet_pair& part : list_of(given.parts, given.part_count, "parts")) {
    check_value(part.key != nullptr && part.value != nullptr, "parts",
                "one of the `parts` has no key or no value");
    made.parts[part.key] = part.value;
  }
  made.loras = loras_of(given.loras, given.lora_count);
  for (const octet_keep& rule : list_of(given.keep, given.keep_count, "keep")) {
    made.keep.push_back({text_or(rule.part), choice(kResidencies, rule.where, "keep")});
  }
  made.guided = !flag_of(given.unguided, "unguided");
  made.device = text_or(given.device, "auto");
  made.threads = given.threads;
  made.activations = activations_of(given.activations);
  made.linears = choice(kLinears, given.linears, "linears");
  made.text_encoder_linears =
      choice(kTextLinears, given.text_encoder_linears, "text_encoder_linears");
  made.attention = choice(kAttentions, given.attention, "attention");
  made.tuning = choice(kTunings, given.tuning, "tuning");
  made.convention = choice(kConventions, given.convention, "convention");
  made.require_int8 = flag_of(given.require_int8, "require_int8");
  made.cache_weights = flag_of(given.cache_weights, "cache_weights");
  made.max_memory = given.max_memory;
  return made;
}

PictureRequest request_of(const octet_request& given) {
  check_reserved(given.reserved);
  check_given(given.caption, "caption");
  PictureRequest made;
  made.caption = given.caption;
  made.any_caption = flag_of(given.any_caption, "any_caption");
  if (given.caption_name != nullptr) made.caption_name = given.caption_name;
  if (given.width != 0 || given.height != 0) made.size = {given.width, given.height};
  made.preset = text_or(given.preset);
  made.steps = given.steps;
  const auto guidance = list_of(given.guidance, given.guidance_count, "guidance");
  made.guidance.assign(guidance.begin(), guidance.end());
  made.seed = given.seed;
  const auto noise = list_of(given.noise, given.noise_count, "noise");
  made.noise.assign(noise.begin(), noise.end());
  made.noise_name = text_or(given.noise_name);
  if (given.images != 0) made.images = given.images;
  return made;
}

octet_progress progress_of(const RenderProgress& from) {
  octet_progress made = {};
  made.struct_size = sizeof(made);
  made.stage = static_cast<int32_t>(from.stage);
  made.done = from.done;
  made.total = from.total;
  made.seconds = from.seconds;
  made.eta_s = from.eta_s;
  return made;
}
static_assert(static_cast<int>(Stage::text) == OCTET_STAGE_TEXT);
static_assert(static_cast<int>(Stage::load) == OCTET_STAGE_LOAD);
static_assert(static_cast<int>(Stage::denoise) == OCTET_STAGE_DENOISE);
static_assert(static_cast<int>(Stage::decode) == OCTET_STAGE_DECODE);

octet_preview preview_of(const Preview& from) {
  octet_preview made = {};
  made.struct_size = sizeof(made);
  made.rgb = from.rgb.data();
  made.width = from.width;
  made.height = from.height;
  made.image = from.image;
  made.step = from.step;
  made.steps = from.steps;
  return made;
}

// `metadata` holds what the struct points to.
octet_picture picture_of(const Picture& from, std::vector<octet_pair>& metadata) {
  for (const auto& [key, value] : from.metadata) metadata.push_back({key.c_str(), value.c_str()});
  octet_picture made = {};
  made.struct_size = sizeof(made);
  made.rgb = from.rgb.data();
  made.width = from.width;
  made.height = from.height;
  made.seed = from.seed;
  made.metadata = metadata.data();
  made.metadata_count = metadata.size();
  made.index = from.index;
  return made;
}

octet_report report_of(const RenderReport& from) {
  octet_report made = {};
  made.peak_bytes = from.peak_bytes;
  made.text_s = from.text_s;
  made.load_s = from.load_s;
  made.denoise_s = from.denoise_s;
  made.decode_s = from.decode_s;
  made.width = from.width;
  made.height = from.height;
  made.text_tokens = from.text_tokens;
  made.steps = from.steps;
  made.text_cached = from.text_cached ? 1 : 0;
  made.linears_int8 = from.linears.int8;
  made.linears_protected = from.linears.protected_;
  made.linears_kept = from.linears.kept;
  made.linears_float = from.linears.floating;
  made.text_linears_int8 = from.text_linears.int8;
  return made;
}

// Without a stop object, nothing ever asks it to stop.
std::stop_token token_of(const octet_stop* stop) {
  return stop != nullptr ? stop->source.get_token() : std::stop_token();
}

OnRenderProgress told_by(octet_on_progress progress, void* user, std::stop_token stop = {}) {
  return [progress, user, stop](const RenderProgress& step) {
    if (stop.stop_requested()) return false;
    if (progress == nullptr) return true;
    const octet_progress given = progress_of(step);
    return progress(user, &given) == 0;
  };
}

void load(Engine& engine, const octet_options& given, octet_on_progress progress, void* user) {
  const std::stop_token stop = token_of(given.stop);
  if (stop.stop_requested()) throw Cancelled("load: it was stopped before it began");
  const std::stop_callback end_layer(stop, [&engine] { engine.cancel(); });
  engine.load(options_of(given), told_by(progress, user, stop), flag_of(given.lazy, "lazy"));
}

// The callbacks of one render. Those of C may end the work, but of the engine's own only `progress`
// can: it passes on what the others answered.
class Callbacks {
 public:
  Callbacks(const octet_callbacks& given, std::stop_token stop)
      : given_(given), stop_(std::move(stop)) {}

  RenderCallbacks for_engine() {
    RenderCallbacks made;
    made.progress = [this, progress = told_by(given_.progress, given_.user, stop_)](
                        const RenderProgress& step) {
      if (!progress(step)) stopped_ = true;
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
    return made;
  }

  // The last answer of all, after which the engine asked no more.
  void check_stopped() const {
    if (stopped_) throw Cancelled("render: a callback ended it");
  }

 private:
  octet_callbacks given_;
  std::stop_token stop_;
  bool stopped_ = false;
};

std::string engine_text(const EngineInfo& info, int32_t what) {
  switch (what) {
    case OCTET_TEXT_FAMILY: return info.family;
    case OCTET_TEXT_DEVICE: return info.device;
    case OCTET_TEXT_PLAN: return plan_text(info);
    case OCTET_TEXT_NETWORKS: return fmt::format("{}", fmt::join(info.networks, "\n"));
    case OCTET_TEXT_PRESETS: {
      std::vector<std::string> names;
      for (const PresetInfo& preset : info.presets) names.push_back(preset.name);
      return fmt::format("{}", fmt::join(names, "\n"));
    }
    default: break;
  }
  throw InvalidRequest("what", sentence("`what` is {}, which is not an OCTET_TEXT_...", what));
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
  return c_api::guarded([&] {
    c_api::check_given(engine, "engine");
    c_api::load(engine->engine, c_api::read_struct(options, "options"), progress, user);
  });
}

octet_status octet_engine_unload(octet_engine* engine) {
  return c_api::guarded([&] {
    c_api::check_given(engine, "engine");
    engine->engine.unload();
  });
}

octet_status octet_stop_create(octet_stop** stop) {
  if (stop != nullptr) *stop = nullptr;
  return c_api::guarded([&] {
    c_api::check_given(stop, "stop");
    *stop = new octet_stop;
  });
}

void octet_stop_request(octet_stop* stop) {
  if (stop != nullptr) stop->source.request_stop();
}

void octet_stop_free(octet_stop* stop) { delete stop; }

void octet_engine_free(octet_engine* engine) { delete engine; }

octet_status octet_engine_render(octet_engine* engine, const octet_request* request,
                                 const octet_callbacks* callbacks, octet_report* report) {
  return c_api::guarded([&] {
    c_api::check_given(engine, "engine");
    const octet_request given = c_api::read_struct(request, "request");
    if (report != nullptr) c_api::check_struct(report, "report");
    const std::stop_token stop = c_api::token_of(given.stop);
    if (stop.stop_requested()) throw octet::Cancelled("render: it was stopped before it began");
    c_api::Callbacks told(
        callbacks != nullptr ? c_api::read_struct(callbacks, "callbacks") : octet_callbacks{},
        stop);
    const std::stop_callback end_layer(stop, [engine] { engine->engine.cancel(); });
    const octet::RenderReport done =
        engine->engine.render(c_api::request_of(given), told.for_engine());
    if (report != nullptr) c_api::write_struct(c_api::report_of(done), report);
    told.check_stopped();
  });
}

octet_status octet_engine_check(octet_engine* engine, const octet_request* request) {
  return c_api::guarded([&] {
    c_api::check_given(engine, "engine");
    engine->engine.check(c_api::request_of(c_api::read_struct(request, "request")));
  });
}

octet_status octet_engine_set_loras(octet_engine* engine, const octet_lora* loras,
                                    size_t lora_count, octet_on_progress progress, void* user) {
  return c_api::guarded([&] {
    c_api::check_given(engine, "engine");
    engine->engine.set_loras(c_api::loras_of(loras, lora_count), c_api::told_by(progress, user));
  });
}

void octet_engine_cancel(octet_engine* engine) {
  if (engine != nullptr) engine->engine.cancel();
}

octet_status octet_engine_info(const octet_engine* engine, octet_info* info) {
  return c_api::guarded([&] {
    c_api::check_given(engine, "engine");
    c_api::check_struct(info, "info");
    const octet::EngineInfo known = engine->engine.info();
    octet_info made = {};
    made.work_bytes = known.work_bytes;
    made.available_bytes = known.available_bytes;
    made.used_bytes = known.used_bytes;
    made.token_side = known.token_side;
    made.width = known.size.width;
    made.height = known.size.height;
    c_api::write_struct(made, info);
  });
}

size_t octet_engine_text(const octet_engine* engine, int32_t what, char* text, size_t size) {
  return c_api::guarded_text(text, size, [&] {
    c_api::check_given(engine, "engine");
    return c_api::engine_text(engine->engine.info(), what);
  });
}

octet_status octet_engine_presets(const octet_engine* engine, octet_on_preset on_preset,
                                  void* user) {
  return c_api::guarded([&] {
    c_api::check_given(engine, "engine");
    octet::check_value(on_preset != nullptr, "on_preset", "`on_preset` is NULL");
    for (const octet::PresetInfo& preset : engine->engine.info().presets) {
      octet_preset given = {};
      given.struct_size = sizeof(given);
      given.name = preset.name.c_str();
      given.official_name = preset.official_name.c_str();
      given.steps = preset.steps;
      on_preset(user, &given);
    }
  });
}
