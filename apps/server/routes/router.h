// Which function answers a method and a path.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/routes/call.h"

namespace octet::server {

struct Route {
  // Where its function runs: at once, on a thread that serves all connections, or on the executor.
  enum class Place : uint8_t { here, executor };

  std::string method;
  // "/v1/jobs/{}/events"; {} is one segment, {*} all that follow.
  std::string pattern;
  Place place = Place::executor;
  bool open = false;  // needs no key
  // `?ticket=` of the job that is the path's first part stands for its key.
  bool takes_ticket = false;
  std::function<void(const CallPtr&)> answer;
};

struct RouteMatch {
  const Route* route = nullptr;
  std::vector<std::string> parts;
};

class Router {
 public:
  void add(Route route) { routes_.push_back(std::move(route)); }
  // HEAD is answered as GET, whose body the server leaves away.
  std::optional<RouteMatch> find(const std::string& method, const std::string& path) const;
  // "GET, HEAD, DELETE"; empty: there is nothing at this path.
  std::string methods_of(const std::string& path) const;

 private:
  std::vector<Route> routes_;
};

// The parts of a path that fits the pattern.
std::optional<std::vector<std::string>> match_path(std::string_view pattern, std::string_view path);

}  // namespace octet::server
