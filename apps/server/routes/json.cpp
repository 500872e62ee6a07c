#include "server/routes/json.h"

#include <fmt/format.h>

#include "server/routes/error_objects.h"

namespace octet::server {
namespace {

constexpr int kDeepest = 64;  // what prints a value again calls itself for each level

}  // namespace

Json parse_json(std::string_view text, const std::string& what) try {
  const auto check_depth = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > kDeepest) {
      refuse(400, fmt::format("{} has values nested more than {} deep", what, kDeepest));
    }
    return true;
  };
  return Json::parse(text, check_depth);
} catch (const Json::parse_error& error) {
  refuse(400, fmt::format("{} is not JSON: byte {} does not continue what is before it", what,
                          error.byte));
} catch (const Json::exception&) {
  refuse(400, fmt::format("{} is not JSON that can be read: a number is too large", what));
}

std::string to_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace octet::server
