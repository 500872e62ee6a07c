// What connections, exchanges and the threads of one server share. Exchanges keep it alive after
// the server.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "server/http/http_server.h"
#include "server/http/refusal.h"
#include "server/http/unsent.h"

namespace octet::server::http {

using Clock = std::chrono::steady_clock;

struct Core {
  explicit Core(ServerOptions given)
      : options(std::move(given)), is_tls(!options.certificate.empty()) {}

  // Only threads of the server call what is in here, so that it can be destroyed after them.
  ServerOptions options;
  const bool is_tls;
  std::atomic<bool> draining{false};  // no new requests on old connections
  std::atomic<bool> stopping{false};  // nothing may be suspended any more

  std::atomic<int> streams{0};
  Unsent unsent;
  std::atomic<uint64_t> refused{0}, disconnected{0};

  // Requests whose head has been read, and whose answer has not been sent yet.
  void begin_request();
  void end_request();
  bool wait_for_requests(Clock::time_point until);

  // The answer that goes with a refusal, by the options.
  Response answer_to(const Refusal& refusal) const;

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  int under_way_ = 0;
};

std::string new_request_id();

}  // namespace octet::server::http
