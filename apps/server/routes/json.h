// JSON of requests and answers. Objects keep the order of their fields: that of a caption is part
// of what the model reads.
#pragma once

#include <string>
#include <string_view>

#include "formats/json_value.h"

namespace octet::server {

using Json = nlohmann::ordered_json;

// Throws Refused (400) for what is no JSON, or is nested more deeply than any caption.
Json parse_json(std::string_view text, const std::string& what);
// One line. Never throws for a text that is not UTF-8.
std::string to_line(const Json& json);

}  // namespace octet::server
