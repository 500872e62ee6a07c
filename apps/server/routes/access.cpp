#include "server/routes/access.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>

#include "server/routes/base64.h"
#include "server/routes/error_objects.h"

namespace octet::server {
namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char each) { return std::tolower(each); });
  return lower;
}

bool is_address(const std::string& name) {
  in6_addr bytes = {};
  return inet_pton(AF_INET, name.c_str(), &bytes) == 1 ||
         inet_pton(AF_INET6, name.c_str(), &bytes) == 1;
}

// "https://example.org:8642" -> "example.org:8642"
std::string_view place_of(std::string_view origin) {
  const size_t scheme = origin.find("://");
  return scheme == std::string_view::npos ? std::string_view() : origin.substr(scheme + 3);
}

bool is_own_origin(const http::Request& head, const std::string& origin) {
  const std::string* const host = head.header("host");
  const std::string_view place = place_of(origin);
  return host != nullptr && !place.empty() && lower_case(place) == lower_case(*host);
}

bool is_listed_origin(const AccessRules& rules, const std::string& origin) {
  return std::ranges::find(rules.origins, origin) != rules.origins.end();
}

std::optional<std::string_view> after_scheme(std::string_view header, std::string_view scheme) {
  if (header.size() <= scheme.size() || header[scheme.size()] != ' ') return std::nullopt;
  if (lower_case(header.substr(0, scheme.size())) != scheme) return std::nullopt;
  header.remove_prefix(scheme.size());
  const size_t begin = header.find_first_not_of(' ');
  if (begin == std::string_view::npos) return std::nullopt;
  return header.substr(begin, header.find_last_not_of(' ') + 1 - begin);
}

// A bearer key, or the password of basic authentication: front ends made for other servers know
// nothing else.
std::optional<std::string> key_of(const std::string& authorization) {
  if (const auto key = after_scheme(authorization, "bearer")) return std::string(*key);
  const auto basic = after_scheme(authorization, "basic");
  if (!basic) return std::nullopt;
  const std::optional<std::string> pair = from_base64(*basic);
  const size_t colon = pair ? pair->find(':') : std::string::npos;
  if (colon == std::string::npos) return std::nullopt;
  return pair->substr(colon + 1);
}

}  // namespace

std::string host_name(std::string_view host) {
  if (host.starts_with('[')) {
    const size_t end = host.find(']');
    return end == std::string_view::npos ? "" : std::string(host.substr(1, end - 1));
  }
  return lower_case(host.substr(0, host.find(':')));
}

bool is_own_host(const AccessRules& rules, const http::Request& head) {
  const std::string* const host = head.header("host");
  if (host == nullptr) return true;  // no browser
  const std::string name = host_name(*host);
  return name == "localhost" || is_address(name) ||
         std::ranges::any_of(rules.hosts, [&](const std::string& each) {
           return each == "*" || lower_case(each) == name;
         });
}

bool is_allowed_origin(const AccessRules& rules, const http::Request& head) {
  const std::string* const origin = head.header("origin");
  return origin == nullptr || is_own_origin(head, *origin) || is_listed_origin(rules, *origin);
}

http::Headers cors_headers(const AccessRules& rules, const http::Request& head) {
  const std::string* const origin = head.header("origin");
  if (rules.origins.empty()) return {};
  if (origin == nullptr || !is_listed_origin(rules, *origin)) return {{"Vary", "Origin"}};
  return {{"Access-Control-Allow-Origin", *origin},
          {"Access-Control-Expose-Headers",
           "X-Request-Id, Location, Retry-After, X-Octet-Ignored, Content-Disposition"},
          {"Vary", "Origin"}};
}

std::string client_name(const AccessRules& rules, const http::Request& head) {
  if (rules.keys == nullptr) return {};
  const std::string* const header = head.header("authorization");
  const std::optional<std::string> key = header != nullptr ? key_of(*header) : std::nullopt;
  if (!key) {
    refuse(401, "the request has no key, expected the header `Authorization: Bearer KEY`", {},
           "missing_api_key");
  }
  if (auto name = rules.keys->name_of(*key)) return *name;
  refuse(401, "the key of the request is none of this server's", {}, "invalid_api_key");
}

}  // namespace octet::server
