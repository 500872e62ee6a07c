// The lists that such front ends fill their menus with, and their options.
#include <fmt/format.h>

#include <utility>

#include "server/routes/context.h"
#include "server/routes/fields.h"
#include "server/routes/openai.h"

namespace octet::server {
namespace {

constexpr size_t kLongestModel = 1024;

Json sampler_list(const Context&) {
  return Json::array({{{"name", "Euler"},
                       {"aliases", Json::array({"euler", "k_euler"})},
                       {"options", Json::object()}}});
}

Json scheduler_list(const Context&) {
  return Json::array({{{"name", "automatic"},
                       {"label", "Automatic"},
                       {"aliases", nullptr},
                       {"default_rho", -1},
                       {"need_inner_model", false}}});
}

Json model_list(const Context& context) {
  const std::string& id = context.service.options().model_id;
  return Json::array({{{"title", id},
                       {"model_name", id},
                       {"hash", nullptr},
                       {"sha256", nullptr},
                       {"filename", id},
                       {"config", nullptr}}});
}

Json lora_list_of(const Context& context) {
  Json list = Json::array();
  for (const auto& [name, file] : context.service.options().loras) {
    list.push_back({{"name", name}, {"alias", name}, {"path", name}, {"metadata", Json::object()}});
  }
  return list;
}

Json upscaler_list(const Context&) {
  return Json::array({{{"name", "None"},
                       {"model_name", nullptr},
                       {"model_path", nullptr},
                       {"model_url", nullptr},
                       {"scale", 4}}});
}

Json no_entries(const Context&) { return Json::array(); }

Json option_list(const Context& context) {
  const auto& options = context.service.options();
  return {{"sd_model_checkpoint", options.model_id},
          {"sd_checkpoint_hash", nullptr},
          {"sd_vae", "Automatic"},
          {"CLIP_stop_at_last_layers", 1},
          {"samples_format", "png"},
          {"live_previews_enable", true},
          {"show_progress_every_n_steps", 1}};
}

// The one that matters chooses the model.
void set_options(Context& context, const CallPtr& call) {
  const Json body = call->body();
  Fields fields(body);
  const std::string& id = context.service.options().model_id;
  const auto model = fields.text("sd_model_checkpoint", kLongestModel);
  if (model && *model != id) {
    refuse_field("sd_model_checkpoint",
                 fmt::format("`sd_model_checkpoint` is another model, expected {}: the server has "
                             "one, which it was started with",
                             id));
  }
  http::Headers headers;
  if (const auto ignored = fields.unknown(); !ignored.empty()) {
    headers.emplace_back("X-Octet-Ignored", ignored_header(ignored));
  }
  call->json(200, Json::object(), std::move(headers));
}

}  // namespace

void add_sdapi_lists(Context& context) {
  const auto add = [&](const char* pattern, Json (*list)(const Context&)) {
    context.router.add(
        {.method = "GET", .pattern = pattern, .answer = [&context, list](auto& call) {
           call->json(200, list(context));
         }});
  };
  add("/sdapi/v1/samplers", sampler_list);
  add("/sdapi/v1/schedulers", scheduler_list);
  add("/sdapi/v1/sd-models", model_list);
  add("/sdapi/v1/loras", lora_list_of);
  add("/sdapi/v1/upscalers", upscaler_list);
  add("/sdapi/v1/latent-upscale-modes", no_entries);
  add("/sdapi/v1/sd-vae", no_entries);
  add("/sdapi/v1/options", option_list);
  context.router.add({.method = "POST",
                      .pattern = "/sdapi/v1/options",
                      .answer = [&context](const CallPtr& call) { set_options(context, call); }});
}

}  // namespace octet::server
