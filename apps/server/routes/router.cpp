#include "server/routes/router.h"

#include <utility>

namespace octet::server {
namespace {

// "/v1/jobs" -> "v1"; what is left is "/jobs".
std::string_view take_segment(std::string_view& path) {
  path.remove_prefix(1);
  const size_t end = std::min(path.find('/'), path.size());
  const std::string_view segment = path.substr(0, end);
  path.remove_prefix(end);
  return segment;
}

}  // namespace

std::optional<std::vector<std::string>> match_path(std::string_view pattern,
                                                   std::string_view path) {
  std::vector<std::string> parts;
  while (pattern.starts_with('/') && path.starts_with('/')) {
    if (pattern == "/{*}") {
      if (path.size() == 1) return std::nullopt;
      parts.emplace_back(path.substr(1));
      return parts;
    }
    const std::string_view expected = take_segment(pattern), segment = take_segment(path);
    if (expected == "{}" && !segment.empty()) {
      parts.emplace_back(segment);
    } else if (expected != segment) {
      return std::nullopt;
    }
  }
  if (!pattern.empty() || !path.empty()) return std::nullopt;
  return parts;
}

std::optional<RouteMatch> Router::find(const std::string& method, const std::string& path) const {
  const std::string& wanted = method == "HEAD" ? "GET" : method;
  for (const Route& route : routes_) {
    if (route.method != wanted) continue;
    if (auto parts = match_path(route.pattern, path)) return RouteMatch{&route, std::move(*parts)};
  }
  return std::nullopt;
}

std::string Router::methods_of(const std::string& path) const {
  std::string methods;
  for (const Route& route : routes_) {
    if (!match_path(route.pattern, path)) continue;
    if (!methods.empty()) methods += ", ";
    methods += route.method == "GET" ? "GET, HEAD" : route.method;
  }
  return methods;
}

}  // namespace octet::server
