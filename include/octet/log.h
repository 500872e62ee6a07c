// Where log lines go. The library writes nothing by itself.
#pragma once

#include <functional>
#include <string_view>

namespace octet::log {

enum class Level { debug, info, warning };

using Sink = std::function<void(Level, std::string_view line)>;

// Replaces the sink; an empty one (the state at start) drops every line.
void set_sink(Sink sink);

}  // namespace octet::log
