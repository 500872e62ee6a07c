// The HTTP API: every route, over the service and the transport.
//
//   Api api(service, {.loopback = true});
//   HttpServer server({.admit = api.admit(), .handle = api.handle(), ...});
//
// The API outlives the server.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "octet/log.h"
#include "server/http/http_server.h"
#include "server/service/keys.h"
#include "server/service/service.h"

namespace octet::server {

// A line of the server's log: a sentence, and fields for who reads lines as JSON.
struct LogLine {
  log::Level level = log::Level::info;
  std::string sentence = {};
  std::string request_id = {};  // empty: of no request
  std::vector<std::pair<std::string, std::string>> fields = {};
};

struct ApiOptions {
  std::shared_ptr<KeyFile> keys = {};     // none: anybody may ask
  std::vector<std::string> hosts = {};    // names of this server besides localhost; "*": any
  std::vector<std::string> origins = {};  // of pages that may use the API from a browser
  // Where links to pictures begin, "https://pictures.example.org"; empty: as the client called it.
  std::string public_address = {};
  bool tls = false;
  bool loopback = true;      // only this machine reaches the server: metrics need no key
  bool reads_words = false;  // the model takes plain text by its words, instead of wrapped
  std::function<http::ServerCounts()> connections = {};  // for metrics
  std::function<void(const LogLine&)> log = {};
};

class Api {
 public:
  Api(Service& service, ApiOptions options);
  ~Api();
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  // The functions of http::ServerOptions with these names.
  std::optional<http::Response> admit(const http::Request& head);
  void handle(const std::shared_ptr<http::Exchange>& exchange);
  http::Response refusal(int status, const std::string& sentence);
  void done(const http::Request& head, int status, uint64_t bytes, double seconds);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octet::server
