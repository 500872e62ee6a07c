#include "server/http/core.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <random>

namespace octet::server::http {

void Core::begin_request() {
  const std::lock_guard lock(mutex_);
  ++under_way_;
}

void Core::end_request() {
  const std::lock_guard lock(mutex_);
  if (--under_way_ == 0) none_.notify_all();
}

bool Core::wait_for_requests(Clock::time_point until) {
  std::unique_lock lock(mutex_);
  return none_.wait_until(lock, until, [this] { return under_way_ == 0; });
}

Response Core::answer_to(const Refusal& refusal) const {
  Response response;
  if (options.refusal) {
    try {
      response = options.refusal(refusal.status, refusal.sentence);
    } catch (...) {
      response = {};
    }
  }
  if (!response.body) {
    response.headers.emplace_back("Content-Type", "text/plain; charset=utf-8");
    response.body = std::make_shared<const std::string>(refusal.sentence + "\n");
  }
  response.status = refusal.status;
  const bool says_when = std::ranges::any_of(
      response.headers, [](const auto& header) { return header.first == "Retry-After"; });
  if (refusal.status == 503 && !says_when) response.headers.emplace_back("Retry-After", "5");
  return response;
}

std::string new_request_id() {
  std::array<unsigned char, 12> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    std::random_device source;
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(source());
  }
  std::string id = "req-";
  for (const unsigned char byte : bytes) {
    id += "0123456789abcdef"[byte >> 4];
    id += "0123456789abcdef"[byte & 15];
  }
  return id;
}

}  // namespace octet::server::http
