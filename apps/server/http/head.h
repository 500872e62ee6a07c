// The head of a request: what libmicrohttpd leaves unchecked, percent-decoding, and where the body
// ends. Nothing here knows a connection.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "server/http/exchange.h"
#include "server/http/refusal.h"

namespace octet::server::http {

bool is_token(std::string_view text);         // a method, or a header's name
bool is_header_value(std::string_view text);  // without control characters: no second line
bool is_valid_utf8(std::string_view text);

// Fills path and query from what stood between method and version.
std::optional<Refusal> read_target(std::string_view target, Request& request);

// How the body is sent, by the headers.
struct Framing {
  bool chunked = false;
  uint64_t length = 0;  // where it is not chunked
  bool waits_for_continue = false;
  bool has_body() const { return chunked || length > 0; }
};

// Finds what makes two readers of one byte stream see different requests: several lengths, a length
// beside chunks, names with spaces. `is_1_1`: the version that needs a Host.
std::optional<Refusal> read_framing(const Request& request, bool is_1_1, Framing& framing);

}  // namespace octet::server::http
