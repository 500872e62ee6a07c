// Sessions as the public functions use them.
#pragma once

#include "engine/session.h"
#include "octet/generate.h"

namespace octet::api {

// Names of the hub as paths.
ModelOptions with_paths(ModelOptions options);

// Throws InvalidRequest and Error for what can be known without a model.
engine::RenderJob job_of(const models::Family& family, const PictureRequest& request,
                         const ModelOptions& options, bool warn);

RenderReport render(engine::Session& session, const PictureRequest& request,
                    const ModelOptions& options, const RenderCallbacks& callbacks, bool warn);

void log_size_warning(const engine::Session& session, const PictureRequest& request);

// A request on its own: a session that keeps nothing that the request does not need any more.
class OneShot {
 public:
  explicit OneShot(const GenerateRequest& request);
  ~OneShot();

  // Throws what run() would throw before it loads anything; with `warn` also logs its warnings.
  LatentShape check(bool warn);
  RenderReport run(const RenderCallbacks& callbacks, bool warn);

 private:
  GenerateRequest request_;
  std::atomic<bool> stop_{false};
  std::unique_ptr<engine::Session> session_;
};

}  // namespace octet::api
