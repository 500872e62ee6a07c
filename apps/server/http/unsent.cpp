#include "server/http/unsent.h"

namespace octet::server::http {

void Unsent::hold(const std::string& body) {
  const std::lock_guard lock(mutex_);
  if (++bodies_[&body] == 1) hold(body.size());
}

void Unsent::release(const std::string& body) {
  const std::lock_guard lock(mutex_);
  const auto at = bodies_.find(&body);
  if (--at->second > 0) return;
  bodies_.erase(at);
  release(body.size());
}

}  // namespace octet::server::http
