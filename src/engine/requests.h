// Sessions as the public functions use them.
#pragma once

#include "engine/session.h"
#include "octet/generate.h"

namespace octet::engine {

// Names of the hub as paths.
ModelOptions with_paths(ModelOptions options);

RenderReport render(Session& session, const Job& job, const RenderCallbacks& callbacks);

// What is known of requests before anything is loaded.
struct CheckedRequests {
  ModelOptions model;  // with paths; not guided where no step is
  LatentShape latents;
  uint64_t text_bytes = 0;  // of the features of all captions
  PictureSize size;
  models::Schedule schedule;
};

// Requests that are known beforehand, which differ in their captions alone. There is at least one.
// A session for one of them keeps nothing that it does not need any more; one for several stays
// loaded.
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
