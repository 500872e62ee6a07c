#include "server/routes/call.h"

#include <utility>

namespace octet::server {

void Call::json(int status, const Json& body, http::Headers headers) {
  text(status, to_line(body), "application/json", std::move(headers));
}

void Call::text(int status, std::string body, const std::string& type, http::Headers headers) {
  headers.emplace_back("Content-Type", type);
  headers.emplace_back("Cache-Control", "no-store");
  answer({.status = status,
          .headers = std::move(headers),
          .body = std::make_shared<const std::string>(std::move(body))});
}

void Call::answer(http::Response response) {
  response.headers = with_always(std::move(response.headers));
  exchange_->answer(std::move(response));
}

// No proxy may collect the events of a stream, or answer with those of another.
std::shared_ptr<http::Stream> Call::event_stream(http::Headers headers) {
  headers.emplace_back("Content-Type", "text/event-stream");
  headers.emplace_back("Cache-Control", "no-store");
  headers.emplace_back("X-Accel-Buffering", "no");
  return exchange_->stream(200, with_always(std::move(headers)));
}

http::Headers Call::with_always(http::Headers headers) const {
  headers.insert(headers.end(), always_.begin(), always_.end());
  return headers;
}

}  // namespace octet::server
