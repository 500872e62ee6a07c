// One HTTP request and its answer. The server calls a handler with an Exchange as soon as the
// request is complete; the answer may come from any thread, at any later time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace octet::server::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string id;      // "req-...": in logs, and in the header X-Request-Id of the answer
  std::string method;  // "GET"
  std::string path;    // decoded, without the query
  std::vector<std::pair<std::string, std::string>> query;
  Headers headers;  // names in lower case
  std::string body;
  std::string peer;  // the client's address, without its port

  // The first header of this name (in lower case), or query parameter; null if there is none.
  const std::string* header(std::string_view name) const;
  const std::string* parameter(std::string_view name) const;
};

// What an answer consists of besides its status; shared, since one picture may be sent to many.
using Bytes = std::shared_ptr<const std::string>;

struct Response {
  int status = 200;
  Headers headers = {};
  Bytes body = {};  // none: empty
};

// An answer that is sent piece by piece. All functions may be called from any thread, and none
// waits for the client. One that is destroyed before its end is broken off, so that the client sees
// that something is missing.
class Stream {
 public:
  virtual ~Stream() = default;
  // Bytes that the client has not taken yet. Whoever writes more than a reader takes looks at this
  // and leaves out what can be left out.
  virtual size_t waiting() const = 0;
  // After the end, or when the client has left, this does nothing. A reader who lets more wait than
  // the limit allows is disconnected.
  virtual void write(std::string_view bytes) = 0;
  virtual void end() = 0;
};

class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const Request& request() const = 0;
  // One of these two, once. An exchange that is destroyed without an answer is answered with 500.
  virtual void answer(Response response) = 0;
  // Where too many streams are open the answer is 503, and the client counts as one that has left.
  virtual std::shared_ptr<Stream> stream(int status, Headers headers) = 0;
  // Called once, on a thread of the server, if the client leaves before the answer has been sent
  // completely; at once if it has left already. A client that closes its side has left. Must not
  // wait; a second function takes the place of the first.
  virtual void on_gone(std::function<void()> gone) = 0;
};

}  // namespace octet::server::http
