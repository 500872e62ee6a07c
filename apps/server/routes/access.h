// Who may ask: keys, names of this server, pages of other servers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "server/http/exchange.h"
#include "server/service/job.h"
#include "server/service/keys.h"

namespace octet::server {

struct AccessRules {
  std::shared_ptr<KeyFile> keys = {};     // none: anybody may ask
  std::vector<std::string> hosts = {};    // names of this server; "*": any
  std::vector<std::string> origins = {};  // of pages of others: "https://example.org"
};

// "[::1]:80" -> "::1", "Example.org:80" -> "example.org".
std::string host_name(std::string_view host);

// A page of another server may have made a browser believe that this one has that server's name
// (DNS rebinding). Addresses cannot be rebound.
bool is_own_host(const AccessRules& rules, const http::Request& head);

// Browsers say which page a request comes from. True, too, for what is no browser and says nothing.
bool is_allowed_origin(const AccessRules& rules, const http::Request& head);

// Headers that let an allowed page of another server read the answer.
http::Headers cors_headers(const AccessRules& rules, const http::Request& head);

// The client's name: that of its key, or empty if keys are not in use. Throws Refused (401).
std::string client_name(const AccessRules& rules, const http::Request& head);

}  // namespace octet::server
