// One request on its way through a route: what was asked, by whom, and ways to answer.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/exchange.h"
#include "server/routes/error_objects.h"
#include "server/routes/json.h"

namespace octet::server {

class Call {
 public:
  // `always`: headers of any answer.
  Call(std::shared_ptr<http::Exchange> exchange, std::string key, std::vector<std::string> parts,
       http::Headers always)
      : exchange_(std::move(exchange)),
        key_(std::move(key)),
        parts_(std::move(parts)),
        always_(std::move(always)) {}

  const http::Request& request() const { return exchange_->request(); }
  const std::string& key() const { return key_; }  // the client's name; empty: keys are not in use
  // What stands for the n-th {} of the route's pattern.
  const std::string& part(size_t n) const { return parts_[n]; }

  Json body() const { return parse_json(request().body, "the body"); }

  void json(int status, const Json& body, http::Headers headers = {});
  void text(int status, std::string body, const std::string& type, http::Headers headers = {});
  void answer(http::Response response);
  void fail(const Failure& failure) { answer(error_response(failure)); }

  std::shared_ptr<http::Stream> event_stream(http::Headers headers = {});
  // Of a client that leaves before the answer's end.
  void on_gone(std::function<void()> gone) { exchange_->on_gone(std::move(gone)); }

 private:
  http::Headers with_always(http::Headers headers) const;

  const std::shared_ptr<http::Exchange> exchange_;
  const std::string key_;
  const std::vector<std::string> parts_;
  const http::Headers always_;
};
using CallPtr = std::shared_ptr<Call>;

}  // namespace octet::server
