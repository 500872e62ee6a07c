// One HTTP connection after another, over libcurl: GET and HEAD with redirects, ranges and a token.
//
// Redirects are followed here and not by libcurl, whose versions differ in what they call another
// host: the token goes to the scheme, host and port that it was meant for and nowhere else. Only
// http and https are spoken, and a redirect from https to http is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "hub/retry.h"

namespace octet::hub {

// Throws Error when this build has no libcurl.
void require_http();

struct HttpRequest {
  std::string url;
  std::string token;         // empty: none
  std::string token_origin;  // a URL; the token goes to its scheme, host and port alone
  bool head_only = false;    // HEAD; a redirect to another origin is then the answer
  struct Bytes {
    uint64_t from = 0, to = 0;  // `to` is one beyond the last
  };
  std::optional<Bytes> bytes;
};

struct HttpAnswer {
  int status = 0;
  std::string url;                             // where it came from, redirects followed
  std::map<std::string, std::string> headers;  // names in lower case
  double retry_after_seconds = 0;              // 0 when it does not say
  std::string header(const std::string& name) const;
};

struct HttpSettings {
  long idle_seconds = 30;           // a connection without a byte for so long counts as dropped
  std::function<bool()> is_wanted;  // asked now and then; false ends a transfer
};

class HttpConnection {
 public:
  explicit HttpConnection(HttpSettings settings);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // `on_head` sees the answer before its body and says whether the body is wanted; both callbacks
  // may throw. Throws Transient for failures of the network, Error for the rest; an HTTP status is
  // never an error here. When is_wanted() ends it, the answer has status 0.
  HttpAnswer send(const HttpRequest& request, const std::function<bool(const HttpAnswer&)>& on_head,
                  const std::function<void(std::span<const std::byte>)>& on_body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The scheme, host and port of a URL, the port always written: "https://huggingface.co:443".
// Throws Error when it is not an http or https URL.
std::string origin_of(const std::string& url);

}  // namespace octet::hub
