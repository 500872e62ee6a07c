// Server-sent events: one write for each, so that events of several threads do not mix.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/http/exchange.h"
#include "server/routes/json.h"

namespace octet::server {

// id 0: without.
std::string sse_event(std::string_view name, const std::string& line, uint64_t id = 0);

// The event after which a client wants to go on; 0: from the first. Throws Refused (400).
uint64_t last_event_id(const http::Request& request);

// A reader who has left this much waiting is not sent what can be left out.
constexpr size_t kSlowReaderBytes = size_t{1} << 20;
inline bool is_slow(const http::Stream& stream) { return stream.waiting() > kSlowReaderBytes; }

}  // namespace octet::server
