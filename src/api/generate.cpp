// octet::generate: one engine for one request.
#include "octet/generate.h"

#include <utility>

#include "api/engine.h"
#include "base/error.h"
#include "base/log.h"
#include "formats/boundary.h"
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
    const engine::Asked asked = engine::asked_of(family, defaults, request, model.convention);
    for (const float by : asked.steps.guidance) guided = guided || by != 1;
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
    const auto job = engine::make_job(session_->facts(), request);
    checked.latents = job->latents();
    checked.text_bytes += job->tokens.size() * sizeof(float) *
                          static_cast<uint64_t>(session_->model().text_encoder->feature_count());
    checked.size = job->size();
    checked.schedule = job->schedule();
    // What is odd about the size is so for all of them.
    const bool is_last = &request == &requests_.back();
    for (const Sentence& warning : is_last ? job->warnings : job->asked.warnings) {
      if (warn) log::warning("{}", warning);
    }
  }
  return checked;
}

RenderReport RequestSession::run(size_t request, const RenderCallbacks& callbacks) {
  const auto job = engine::make_job(session_->facts(), requests_.at(request));
  const std::stop_callback stopping(job->request.stop, [this] { stop_ = true; });
  return render(*session_, *job, callbacks);
}

}  // namespace api

RenderReport generate(const GenerateRequest& request, const RenderCallbacks& callbacks) try {
  if (request.picture.stop.stop_requested()) {
    throw Cancelled("generate: stopped on request before it began");
  }
  check(callbacks.picture != nullptr,
        "generate: there is no picture callback; expected a function");
  return api::RequestSession(request.model, {request.picture}).run(0, callbacks);
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
