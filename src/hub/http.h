// One HTTP connection after another, over libcurl: GET and HEAD with redirects, ranges and a token.
//
// Redirects are followed here and not by libcurl, whose versions differ in what they call another
// host: the token goes to the scheme, host and port that it was meant for and nowhere else. Only
// http and https are spoken, and a redirect from https to http is refused. No sentence and no line
// of the log shows a URL's name and password, or what follows its '?'.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"

namespace octet::hub {

// What may be gone at the next attempt: a dropped connection, a busy server.
class Transient : public Error {
 public:
  explicit Transient(const std::string& sentence, double seconds = 0)
      : Error(sentence), after_seconds(seconds) {}
  double after_seconds;  // the server asked to wait so long; 0 when it did not
};

// Nobody answers there, or there is no such host: no network, as a rule.
class Unreachable : public Transient {
 public:
  using Transient::Transient;
};

class Stopped : public Error {
 public:
  Stopped() : Error("pull: stopped; what was fetched is kept, pull again to go on") {}
};

// Throws Error when this build has no libcurl.
void require_http();

struct HttpRequest {
  std::string url;
  std::string token;           // empty: none
  std::string user, password;  // for HTTP's Basic authentication; empty: none. A token goes first
  std::string home;            // a URL; all of these go only to its scheme, host and port
  bool head_only = false;      // HEAD; a redirect to another origin is then the answer
  long most_seconds = 0;       // for the whole answer; 0: as long as it takes
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

// A connection slower than this counts as dropped, as one without a byte does: a server that sends
// a byte now and then could hold a client for ever. An old telephone modem is five times as fast.
inline constexpr int64_t kSlowestBytesPerSecond = 1000;

struct HttpSettings {
  long idle_seconds = 30;           // so long without a byte, or slower than the slowest: dropped
  std::function<bool()> is_wanted;  // asked now and then; false ends a transfer
  // Bytes that came over all connections which share the network with this one, so that a slow
  // network is not taken for a slow server. Without it, this connection's own are counted.
  std::function<int64_t()> received = {};
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

// --- trying again what failed for a moment

struct Patience {
  int retries = 5;                  // after attempts that brought nothing
  std::function<bool()> is_wanted;  // asked while waiting; false ends it with Stopped
  // Fewer of them, and none after a slow attempt, while nothing was ever reached: whoever has no
  // network shall not wait for that sentence.
  bool is_first_contact = false;
};

// Seconds before the attempt after `failures` failures in a row: half a second, doubled each time,
// at most half a minute, and somewhat random, so that many clients do not come back together.
double backoff_seconds(int failures, double random_share);

// Calls `attempt` until it returns. After a Transient it waits and calls again, at most `retries`
// times in a row; `got_further`, where given, says that the failed attempt brought something, which
// restarts the count. A server that asks for a very long pause is an Error.
void try_until_done(const Patience& patience, const std::function<void()>& attempt,
                    const std::function<bool()>& got_further = {});

// --- addresses

// The scheme, host and port of a URL, the port always written: "https://huggingface.co:443".
// Throws Error when it is not an http or https URL.
std::string origin_of(const std::string& url);

// "http://user:password@host/path" taken apart; the two are empty where the URL has none.
struct Address {
  std::string url;  // without them, and without a slash at its end
  std::string user, password;
};
Address address_of(const std::string& url);

// For a sentence: without a name, a password, and what follows '?'.
std::string shown(const std::string& url);

// Where a Location header of an answer from `url` leads; itself when it is none that can be
// followed.
std::string joined(const std::string& url, const std::string& location);

// "host:port:address,address", for CURLOPT_RESOLVE: the host of a URL, looked up in this thread.
// Empty when it is not found.
std::string look_up(const std::string& url);

// The header Content-Range, "bytes 100-199/5000": where it ends, 200. Throws Error unless it begins
// at `from`, ends at or before `to` (one beyond the last byte) and is of a file of `size` bytes;
// `what` begins the sentence.
uint64_t end_of_content_range(const std::string& header, uint64_t from, uint64_t to, uint64_t size,
                              const std::string& what);

}  // namespace octet::hub
