#include "report/html.h"

#include <cstdint>

#include "formats/text.h"

namespace octet::report {

std::string html_text(std::string_view text) {
  std::string safe;
  for (const char c : without_controls(text)) {
    switch (c) {
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '&': safe += "&amp;"; break;
      case '"': safe += "&quot;"; break;
      case '\'': safe += "&#39;"; break;
      default: safe += c;
    }
  }
  return safe;
}

std::string png_uri(std::span<const std::byte> png) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string uri = "data:image/png;base64,";
  for (size_t at = 0; at < png.size(); at += 3) {
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (at + i < png.size() ? std::to_integer<uint32_t>(png[at + i]) : 0);
    }
    for (size_t i = 0; i < 4; ++i) {
      uri += at + i <= png.size() ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
    }
  }
  return uri;
}

}  // namespace octet::report
