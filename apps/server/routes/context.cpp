#include "server/routes/context.h"

#include <exception>
#include <utility>

#include "octet/error.h"
#include "server/service/failures.h"

namespace octet::server {
namespace {

constexpr int kExecutorThreads = 2;
constexpr size_t kMostWaiting = 1024;     // requests; those of a busy second
constexpr double kKeepAliveSeconds = 15;  // below what proxies take for an idle connection

}  // namespace

void AnswerCounts::add(const std::string& route, int status, double seconds) {
  const std::lock_guard lock(mutex_);
  auto& [count, sum] = counts_[{route, status}];
  ++count;
  sum += seconds;
}

AnswerCounts::Counts AnswerCounts::all() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

LastPreviews::Held LastPreviews::hold(const std::string& job) {
  {
    const std::lock_guard lock(mutex_);
    ++previews_[job].holders;
  }
  return {this, [job](LastPreviews* self) { self->release(job); }};
}

void LastPreviews::release(const std::string& job) {
  const std::lock_guard lock(mutex_);
  const auto at = previews_.find(job);
  if (--at->second.holders == 0) previews_.erase(at);
}

void LastPreviews::keep(const std::string& job, http::Bytes png) {
  const std::lock_guard lock(mutex_);
  const auto at = previews_.find(job);
  if (at != previews_.end()) at->second.png = std::move(png);
}

http::Bytes LastPreviews::of(const std::string& job) const {
  const std::lock_guard lock(mutex_);
  const auto at = previews_.find(job);
  return at == previews_.end() ? nullptr : at->second.png;
}

Context::Context(Service& service_, ApiOptions options_)
    : service(service_),
      options(std::move(options_)),
      access{.keys = options.keys, .hosts = options.hosts, .origins = options.origins},
      started_at(now_s()),
      executor(kExecutorThreads, kMostWaiting),
      followers(executor, [this](const std::string& why) { log(log::Level::warning, why, ""); }),
      keep_alive(kKeepAliveSeconds) {}

Context::~Context() {
  followers.clear();
  executor.stop();
}

void Context::log(log::Level level, const std::string& sentence,
                  const std::string& request_id) const {
  if (options.log) options.log({.level = level, .sentence = sentence, .request_id = request_id});
}

void Context::guarded(const CallPtr& call, const std::function<void()>& work) {
  const auto fail_unexpectedly = [&](const std::string& why) {
    const std::string& id = call->request().id;
    log(log::Level::warning, why, id);
    call->fail(failure(
        500, fmt::format("something unexpected happened; the server's log has the reason under "
                         "request id {}",
                         id)));
  };
  try {
    work();
  } catch (const Refused& refused) {
    call->fail(refused.failure);
  } catch (const InvalidRequest& error) {
    call->fail(wrong_request(error));
  } catch (const std::exception& error) {
    fail_unexpectedly(error.what());
  } catch (...) {
    fail_unexpectedly("an exception of no known type");
  }
}

void Context::unattended(const std::function<void()>& work) const {
  try {
    work();
  } catch (const std::exception& error) {
    log(log::Level::warning, error.what(), "");
  } catch (...) {
    log(log::Level::warning, "an exception of no known type", "");
  }
}

}  // namespace octet::server
