// What pages are made of.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace octet::report {

// Text from users and files as text of a page or of an attribute: markup, control characters and
// bytes that are not UTF-8 mean nothing any more.
std::string html_text(std::string_view text);

// "data:image/png;base64,..."
std::string png_uri(std::span<const std::byte> png);

}  // namespace octet::report
