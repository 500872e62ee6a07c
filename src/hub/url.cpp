#include "hub/http.h"

#if OCTET_HAS_CURL
#include <curl/curl.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include "base/error.h"
#include "formats/text.h"

namespace octet::hub {
namespace {

// For a sentence: without the name and password, which end with the last '@' before `limit`, and
// without what follows '?', since signatures of a CDN are secret.
std::string without_secrets(std::string url, size_t limit) {
  const size_t scheme = url.find("://");
  const size_t begin = scheme == url.npos ? 0 : scheme + 3;
  const size_t at = url.rfind('@', limit);
  if (at != url.npos && at >= begin) url.erase(begin, at + 1 - begin);
  return url.substr(0, url.find('?'));
}

// Of what is no URL: nothing says where a password begins or ends there.
std::string shown_in_doubt(const std::string& url) {
  std::string text = without_secrets(url, url.npos);
  const size_t scheme = text.find("://");
  text.resize(
      std::min(text.size(), text.find_first_of(":#", scheme == text.npos ? 0 : scheme + 3)));
  return in_quotes(text);
}

using Url = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

// Nothing when it is no URL.
Url parse_url(const std::string& url) {
  Url parsed(curl_url(), curl_url_cleanup);
  const bool is_url = parsed != nullptr && curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(),
                                                        CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK;
  if (!is_url) parsed.reset();
  return parsed;
}

std::string part_of(const Url& url, CURLUPart part, unsigned flags) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, flags) != CURLUE_OK) return {};
  std::string copy(text);
  curl_free(text);
  return copy;
}

}  // namespace

std::string shown(const std::string& url) {
  const size_t scheme = url.find("://");
  const size_t host = scheme == url.npos ? 0 : scheme + 3;
  return one_line(without_secrets(url, url.find_first_of("/?#", host)));
}

std::string origin_of(const std::string& url) {
  const Url parsed = parse_url(url);
  const std::string scheme = parsed != nullptr ? part_of(parsed, CURLUPART_SCHEME, 0) : "";
  check(scheme == "http" || scheme == "https",
        "{} is not an address that files are fetched from, expected http:// or https://",
        shown_in_doubt(url));
  std::string host = part_of(parsed, CURLUPART_HOST, 0);
  std::transform(host.begin(), host.end(), host.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return scheme + "://" + host + ":" + part_of(parsed, CURLUPART_PORT, CURLU_DEFAULT_PORT);
}

Address address_of(const std::string& url) {
  origin_of(url);
  check(url.find_first_of("?#") == url.npos,
        "{} has a '?' or a '#' in it, expected the address of a hub: its host, and perhaps a path",
        shown_in_doubt(url));
  const Url parsed = parse_url(url);
  Address address{.user = part_of(parsed, CURLUPART_USER, CURLU_URLDECODE),
                  .password = part_of(parsed, CURLUPART_PASSWORD, CURLU_URLDECODE)};
  curl_url_set(parsed.get(), CURLUPART_USER, nullptr, 0);
  curl_url_set(parsed.get(), CURLUPART_PASSWORD, nullptr, 0);
  address.url = part_of(parsed, CURLUPART_URL, 0);
  while (address.url.ends_with('/')) address.url.pop_back();
  check(address.url.find('@') == address.url.npos,
        "{} has an '@' after its host; write '/', '?' and '#' in a name or a password as %2F, %3F "
        "and %23",
        shown_in_doubt(url));
  return address;
}

std::string joined(const std::string& url, const std::string& location) {
  const Url parsed = parse_url(url);
  const bool is_url = parsed != nullptr && !location.empty() &&
                      curl_url_set(parsed.get(), CURLUPART_URL, location.c_str(),
                                   CURLU_NON_SUPPORT_SCHEME | CURLU_URLENCODE) == CURLUE_OK;
  return is_url ? part_of(parsed, CURLUPART_URL, 0) : location;
}

std::string look_up(const std::string& url) {
  const Url parsed = parse_url(url);
  if (parsed == nullptr) return {};
  const std::string host = part_of(parsed, CURLUPART_HOST, 0);
  const std::string port = part_of(parsed, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, ::freeaddrinfo);
  std::string addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof(text), nullptr, 0,
                      NI_NUMERICHOST) != 0) {
      continue;
    }
    const bool is_v6 = one->ai_family == AF_INET6;
    addresses += (addresses.empty() ? "" : ",") + (is_v6 ? fmt::format("[{}]", text) : text);
  }
  return addresses.empty() ? "" : host + ":" + port + ":" + addresses;
}

}  // namespace octet::hub

#endif
