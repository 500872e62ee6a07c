// octet::generate: one engine for one request.
#include "octet/generate.h"

#include <utility>

#include "api/boundary.h"
#include "api/engine.h"
#include "base/error.h"
#include "hub/cache.h"

namespace octet {
namespace api {
namespace {

// Of a model that may not have been pulled: the name itself, which is no path then.
std::string path_or_name(const std::string& model) {
  try {
    return hub::find_model(model);
  } catch (const Error&) {
    return model;
  }
}

// What is wrong with a request is said before what is wrong with the model.
ModelOptions resolved(ModelOptions model, const std::vector<PictureRequest>& requests) {
  const std::string path = path_or_name(model.model);
  const models::Family& family = models::family_of(path);
  const models::PictureDefaults defaults =
      models::defaults_of(family, {path, path_or_name(model.base), path_or_name(model.fallback)});
  bool guided = false;
  for (const PictureRequest& request : requests) {
    const engine::RenderJob job = job_of(family, defaults, request, model, /*warn=*/false);
    guided = guided || models::is_guided(job.schedule);
  }
  model.guided = model.guided && guided;
  return with_paths(std::move(model));
}

}  // namespace

RequestSession::RequestSession(const ModelOptions& model, std::vector<PictureRequest> requests)
    : model_(resolved(model, requests)),
      requests_(std::move(requests)),
      session_(std::make_unique<engine::Session>(
          engine::SessionOptions{
              .model = model_,
              .once = requests_.size() == 1,
              .size = requests_.empty() ? PictureSize{} : requests_.front().size},
          stop_)) {}

RequestSession::~RequestSession() = default;

CheckedRequests RequestSession::check(bool warn) {
  CheckedRequests checked{.model = model_};
  for (const PictureRequest& request : requests_) {
    const engine::RenderJob job = job_of(*session_, request, model_, warn);
    checked.latents = session_->check(job);
    const models::Model& opened = session_->model();
    checked.text_bytes += opened.tokenize(job.prompt).size() * sizeof(float) *
                          static_cast<uint64_t>(opened.text_encoder->feature_count());
    checked.size = job.schedule.size;
    checked.schedule = session_->family().make_schedule(job.schedule);
  }
  if (warn) log_size_warning(*session_, checked.size);
  return checked;
}

RenderReport RequestSession::run(size_t request, const RenderCallbacks& callbacks, bool warn) {
  return render(*session_, requests_.at(request), model_, callbacks, warn);
}

}  // namespace api

RenderReport generate(const GenerateRequest& request, const RenderCallbacks& callbacks) try {
  check(callbacks.picture != nullptr,
        "generate: there is no picture callback; expected a function");
  return api::RequestSession(request.model, {request.picture}).run(0, callbacks, /*warn=*/true);
} catch (...) {
  api::rethrow_as_error();
}

}  // namespace octet
