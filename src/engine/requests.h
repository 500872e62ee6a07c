// Sessions as the public functions use them.
#pragma once

#include "engine/session.h"
#include "octet/generate.h"

namespace octet::engine {

// Resolves names of the Hub to paths.
ModelOptions with_paths(ModelOptions options);

RenderReport render(Session& session, const Job& job, const RenderCallbacks& callbacks);

// What is known about requests before anything is loaded.
struct CheckedRequests {
  ModelOptions model;  // with paths; not guided if no step is
  LatentShape latents;
  uint64_t text_bytes = 0;  // of the features of all captions
  PictureSize size;
  models::Schedule schedule;
};

// A session for requests that are known beforehand and differ only in their captions; there is at
// least one. For a single request, parts are released as soon as they are not needed any more; for
// several, they stay loaded.
class RequestSession {
 public:
  RequestSession(const ModelOptions& model, std::vector<PictureRequest> requests);
  ~RequestSession();

  // Throws what run() would throw before it loads anything; with `warn` also logs its warnings.
  CheckedRequests check(bool warn);
  RenderReport run(size_t request, const RenderCallbacks& callbacks);

 private:
  ModelOptions model_;
  std::vector<PictureRequest> requests_;
  std::atomic<bool> stop_{false};
  std::unique_ptr<Session> session_;
};

}  // namespace octet::engine
