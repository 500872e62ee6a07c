// `octet serve`: the service behind HTTP.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "server/http/http_server.h"
#include "server/service/service.h"

namespace octet::server {

struct ServeOptions {
  ServiceOptions service;
  http::Limits limits;
  std::string address = "127.0.0.1";
  uint16_t port = 0;
  std::string keys = {};                           // a file; empty: none
  bool insecure = false;                           // other addresses without keys
  std::string certificate = {}, private_key = {};  // PEM
  std::string public_url = {};  // as clients call it, if something stands before it
  std::vector<std::string> allowed_origins = {};
  bool prompt_is_wrapped = true;  // plain text becomes a minimal caption, not one of its words
  double grace_s = 30;  // for jobs under way when the server ends
  // For the clients of those jobs, to fetch what they became.
  double linger_s = 5;
};

struct ServeHooks {
  std::function<void(const std::string& url)> listening;
  std::function<void(const std::string& line)> log_line;  // a request, or what went wrong
  std::function<bool()> stop;                             // asked several times a second
  bool json_log = false;
  log::Level lowest = log::Level::info;  // of the lines that are logged
};

// Until `stop`; then ends cleanly. Throws Error if it cannot begin, or if no device has a model.
void serve(const ServeOptions& options, const ServeHooks& hooks);

}  // namespace octet::server
