// What the functions of all routes share.
#pragma once

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "server/routes/access.h"
#include "server/routes/executor.h"
#include "server/routes/follower.h"
#include "server/routes/router.h"
#include "server/routes/routes.h"

namespace octet::server {

// Answers so far, by route and status.
class AnswerCounts {
 public:
  void add(const std::string& route, int status, double seconds);
  // {route, status}: how many, and their seconds.
  using Counts = std::map<std::pair<std::string, int>, std::pair<uint64_t, double>>;
  Counts all() const;

 private:
  mutable std::mutex mutex_;
  Counts counts_;
};

// The last preview of each job of /sdapi/v1/txt2img, for those who ask for progress.
class LastPreviews {
 public:
  // They are kept as long as somebody holds one of these.
  using Held = std::shared_ptr<void>;
  Held hold(const std::string& job);
  void keep(const std::string& job, http::Bytes png);
  http::Bytes of(const std::string& job) const;  // null: none

 private:
  struct Kept {
    http::Bytes png;
    int holders = 0;
  };
  void release(const std::string& job);

  mutable std::mutex mutex_;
  std::map<std::string, Kept> previews_;
};

struct Context {
  Context(Service& service_, ApiOptions options_);
  ~Context();

  void log(log::Level level, const std::string& sentence, const std::string& request_id) const;
  // Runs it; what it throws becomes the answer.
  void guarded(const CallPtr& call, const std::function<void()>& work);
  // The same for what nobody waits for: it becomes a line of the log.
  void unattended(const std::function<void()>& work) const;

  Service& service;
  const ApiOptions options;
  const AccessRules access;
  const double started_at;
  LastPreviews previews;  // followers hold them
  Executor executor;
  Followers followers;
  KeepAlive keep_alive;
  AnswerCounts answers;
  Router router;
};

// One function for each group of routes.
void add_job_routes(Context& context);
void add_event_routes(Context& context);
void add_openai_routes(Context& context);
void add_sdapi_routes(Context& context);
void add_sdapi_lists(Context& context);
void add_caption_routes(Context& context);
void add_model_routes(Context& context);
void add_state_routes(Context& context);
void add_metrics_routes(Context& context);
void add_page_routes(Context& context);

}  // namespace octet::server
