#include "server/http/head.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace octet::server::http {
namespace {

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Nothing where a percent sign is not followed by two digits, or where what results is no text.
std::optional<std::string> decoded(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (text.size() - i < 3) return std::nullopt;
      const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i] == '+' && plus_is_space ? ' ' : text[i];
    }
  }
  if (out.find('\0') != out.npos || !is_valid_utf8(out)) return std::nullopt;
  return out;
}

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return lower(x) == lower(y);
  });
}

size_t count_of(const Request& request, std::string_view name) {
  return static_cast<size_t>(
      std::ranges::count_if(request.headers, [&](const auto& each) { return each.first == name; }));
}

std::optional<Refusal> read_length(const std::string& text, Framing& framing) {
  const std::string_view digits = without_spaces(text);
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, framing.length);
  if (error == std::errc() && stop == end) return std::nullopt;
  if (error == std::errc::result_out_of_range && stop == end) {
    return Refusal{413, "the body is larger than any that is taken", true};
  }
  return Refusal{400, "the header Content-Length is not a number", true};
}

}  // namespace

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool is_header_value(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return is_control(c) && c != '\t'; });
}

bool is_valid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
    const unsigned char first = byte(i++);
    if (first < 0x80) continue;
    const size_t more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    if (first < 0xc2 || first > 0xf4 || text.size() - i < more) return false;
    // Neither an overlong form, nor a surrogate, nor beyond the last code point.
    const unsigned char lowest = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned char highest = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (byte(i) < lowest || byte(i) > highest) return false;
    for (size_t k = 1; k < more; ++k) {
      if ((byte(i + k) & 0xc0) != 0x80) return false;
    }
    i += more;
  }
  return true;
}

std::optional<Refusal> read_target(std::string_view target, Request& request) {
  const Refusal malformed{400, "the address in the request line is malformed", false};
  if (std::ranges::any_of(target, [](char c) { return is_control(c) || c == ' '; })) {
    return malformed;
  }
  // What is sent to a proxy: the whole address. Its host is in the header Host, too.
  if (const size_t scheme = target.find("://");
      scheme != target.npos && is_token(target.substr(0, scheme))) {
    const size_t path = target.find_first_of("/?", scheme + 3);
    target = path == target.npos ? std::string_view("/") : target.substr(path);
  }
  const size_t question = std::min(target.find('?'), target.size());
  auto path = decoded(target.substr(0, question), false);
  if (!path || path->empty() || (path->front() != '/' && *path != "*")) return malformed;
  request.path = std::move(*path);
  std::string_view rest = target.substr(std::min(question + 1, target.size()));
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    auto name = decoded(pair.substr(0, equals), true);
    auto value = decoded(pair.substr(std::min(equals + 1, pair.size())), true);
    if (!name || !value) return malformed;
    request.query.emplace_back(std::move(*name), std::move(*value));
  }
  return std::nullopt;
}

std::optional<Refusal> read_framing(const Request& request, bool is_1_1, Framing& framing) {
  if (!is_token(request.method)) return Refusal{400, "the request's method is malformed", true};
  for (const auto& [name, value] : request.headers) {
    if (!is_token(name)) return Refusal{400, "the name of a header is malformed", true};
    if (!is_header_value(value)) return Refusal{400, "the value of a header is malformed", true};
  }
  const size_t hosts = count_of(request, "host");
  if (hosts > 1 || (is_1_1 && hosts == 0)) {
    return Refusal{400, "expected one header Host", true};
  }
  const size_t lengths = count_of(request, "content-length");
  const size_t encodings = count_of(request, "transfer-encoding");
  if (lengths + encodings > 1) {
    return Refusal{400, "the request says more than once how long its body is", true};
  }
  if (encodings == 1) {
    if (!same_word(without_spaces(*request.header("transfer-encoding")), "chunked")) {
      return Refusal{501, "the header Transfer-Encoding may only say chunked", true};
    }
    framing.chunked = true;
  } else if (lengths == 1) {
    if (auto refusal = read_length(*request.header("content-length"), framing)) return refusal;
  }
  const std::string* expects = request.header("expect");
  framing.waits_for_continue = expects && same_word(without_spaces(*expects), "100-continue");
  return std::nullopt;
}

}  // namespace octet::server::http
