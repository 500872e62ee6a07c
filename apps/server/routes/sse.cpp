#include "server/routes/sse.h"

#include <fmt/format.h>

#include <charconv>

#include "server/routes/error_objects.h"

namespace octet::server {

std::string sse_event(std::string_view name, const std::string& line, uint64_t id) {
  std::string event = id > 0 ? fmt::format("id: {}\n", id) : "";
  event.reserve(event.size() + name.size() + line.size() + 20);
  event.append("event: ").append(name).append("\ndata: ").append(line).append("\n\n");
  return event;
}

uint64_t last_event_id(const http::Request& request) {
  const std::string* const text = request.header("last-event-id");
  if (text == nullptr) return 0;
  uint64_t id = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), id);
  if (error == std::errc() && end == text->data() + text->size()) return id;
  refuse(400, "the header `Last-Event-ID` is no number, expected the id of an event",
         "Last-Event-ID");
}

}  // namespace octet::server
