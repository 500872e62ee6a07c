#include "server/http/exchange.h"

namespace octet::server::http {
namespace {

const std::string* first_of(const Headers& list, std::string_view name) {
  for (const auto& [key, value] : list) {
    if (key == name) return &value;
  }
  return nullptr;
}

}  // namespace

const std::string* Request::header(std::string_view name) const { return first_of(headers, name); }

const std::string* Request::parameter(std::string_view name) const { return first_of(query, name); }

}  // namespace octet::server::http
