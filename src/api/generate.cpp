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

// Of a model that may not have been pulled.
const models::Family& family_of_named(const std::string& model) {
  try {
    return models::family_of(hub::find_model(model));
  } catch (const Error&) {
    return models::family_of(model);
  }
}

// What is wrong with a request is said before what is wrong with the model.
GenerateRequest resolved(GenerateRequest request) {
  const models::Family& family = family_of_named(request.model.model);
  const engine::RenderJob job = job_of(family, request.picture, request.model, /*warn=*/false);
  request.model.guided = request.model.guided && models::is_guided(job.schedule);
  request.model = with_paths(request.model);
  return request;
}

}  // namespace

OneShot::OneShot(const GenerateRequest& request)
    : request_(resolved(request)),
      session_(std::make_unique<engine::Session>(
          engine::SessionOptions{.model = request_.model, .once = true}, stop_)) {}

OneShot::~OneShot() = default;

LatentShape OneShot::check(bool warn) {
  const LatentShape shape =
      session_->check(job_of(session_->family(), request_.picture, request_.model, warn));
  if (warn) log_size_warning(*session_, request_.picture);
  return shape;
}

RenderReport OneShot::run(const RenderCallbacks& callbacks, bool warn) {
  return render(*session_, request_.picture, request_.model, callbacks, warn);
}

}  // namespace api

RenderReport generate(const GenerateRequest& request, const RenderCallbacks& callbacks) try {
  check(callbacks.picture != nullptr, "generate: nobody takes the pictures; expected a function");
  return api::OneShot(request).run(callbacks, /*warn=*/true);
} catch (...) {
  api::rethrow_as_error();
}

}  // namespace octet
