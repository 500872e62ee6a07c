// Base64 (RFC 4648, with padding): pictures in JSON, and the passwords of basic authentication.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace octet::server {

std::string to_base64(std::string_view bytes);
// Appended in place: a picture has megabytes.
void append_base64(std::string& text, std::string_view bytes);
std::optional<std::string> from_base64(std::string_view text);  // nothing for anything else

}  // namespace octet::server
