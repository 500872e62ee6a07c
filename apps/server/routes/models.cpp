// /v1/models, and whether the server is there and ready.
#include <utility>

#include "octet/picture_files.h"
#include "octet/version.h"
#include "server/routes/context.h"
#include "server/routes/job_json.h"

namespace octet::server {
namespace {

Json preset_list(const EngineInfo& info) {
  Json list = Json::array();
  for (const PresetInfo& each : info.presets) {
    list.push_back(
        {{"name", each.name},
         {"official_name", each.official_name.empty() ? Json(nullptr) : Json(each.official_name)},
         {"steps", each.steps}});
  }
  return list;
}

Json format_list() {
  Json list = Json::array();
  for (const Word<PictureFormat>& each : Words<PictureFormat>::list) {
    if (can_encode(each.value)) list.push_back(each.word);
  }
  return list;
}

Json device_list(const Service& service) {
  Json list = Json::array();
  for (const WorkerState& each : service.workers()) list.push_back(each.device);
  return list;
}

Json octet_json(const Context& context, const EngineInfo& info) {
  const ServiceOptions& options = context.service.options();
  Json loras = Json::array();
  for (const auto& [name, file] : options.loras) loras.push_back(name);
  const RequestLimits& limits = options.limits;
  return {{"family", info.family},
          {"devices", device_list(context.service)},
          {"token_side", info.token_side},
          {"default_size", size_text(info.size)},
          {"presets", preset_list(info)},
          {"loras", std::move(loras)},
          {"takes_negative", info.takes_negative},
          {"prompt", context.options.reads_words ? "words" : "wrapped"},
          {"formats", format_list()},
          {"limits",
           {{"pixels", limits.pixels},
            {"steps", limits.steps},
            {"images", limits.images},
            {"caption_bytes", limits.caption_bytes},
            {"loras", limits.loras},
            {"seconds", limits.seconds}}},
          {"version", version()},
          {"commit", commit()}};
}

Json model_json(const Context& context) {
  return {{"id", context.service.options().model_id},
          {"object", "model"},
          {"created", static_cast<int64_t>(context.started_at)},
          {"owned_by", "octet"},
          {"octet", octet_json(context, context.service.info())}};
}

void list_models_of(const Context& context, const CallPtr& call) {
  call->json(200, {{"object", "list"}, {"data", Json::array({model_json(context)})}});
}

void show_model(const Context& context, const CallPtr& call) {
  if (call->part(0) != context.service.options().model_id) {
    refuse(404, "there is no model of this name; GET /v1/models lists the one there is", "model",
           "model_not_found");
  }
  call->json(200, model_json(context));
}

// Says nothing of what failed: everybody may ask.
void show_readiness(const Context& context, const CallPtr& call) {
  const Service& service = context.service;
  if (service.is_ready()) return call->json(200, {{"status", "ready"}});
  const bool has_failed = service.has_failed(), is_draining = service.is_draining();
  const char* const status = is_draining ? "draining" : has_failed ? "failed" : "loading";
  const char* const reason = is_draining ? "the server is about to end"
                             : has_failed
                                 ? "the model could not be loaded; the server's log has the reason"
                                 : "the model is being loaded";
  call->json(503, {{"status", status}, {"reason", reason}}, {{"Retry-After", "5"}});
}

}  // namespace

void add_model_routes(Context& context) {
  context.router.add({.method = "GET", .pattern = "/v1/models", .answer = [&context](auto& call) {
                        list_models_of(context, call);
                      }});
  context.router.add({.method = "GET",
                      .pattern = "/v1/models/{*}",
                      .answer = [&context](auto& call) { show_model(context, call); }});
}

void add_state_routes(Context& context) {
  using enum Route::Place;
  context.router.add({.method = "GET",
                      .pattern = "/health",
                      .place = here,
                      .open = true,
                      .answer = [](auto& call) {
                        call->json(200, {{"status", "ok"}});
                      }});
  context.router.add({.method = "GET",
                      .pattern = "/ready",
                      .place = here,
                      .open = true,
                      .answer = [&context](auto& call) { show_readiness(context, call); }});
}

}  // namespace octet::server
