// What the server itself says no to, before a handler sees the request.
#pragma once

#include <string>

namespace octet::server::http {

struct Refusal {
  int status = 400;
  std::string sentence = {};
  bool close = false;  // where the next request would begin is not certain
};

}  // namespace octet::server::http
