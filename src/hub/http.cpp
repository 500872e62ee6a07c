#include "hub/http.h"

#if OCTET_HAS_CURL
#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <exception>
#include <mutex>
#include <new>
#include <string_view>
#include <utility>
#include <vector>
#endif

#include "formats/text.h"
#include "hub/names.h"

namespace octet::hub {

std::string HttpAnswer::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

uint64_t end_of_content_range(const std::string& header, uint64_t from, uint64_t to, uint64_t size,
                              const std::string& what) {
  // The three numbers of "bytes first-last/whole"; nothing where one is missing.
  constexpr std::string_view kUnit = "bytes ";
  const std::string_view text = header;
  const size_t dash = text.find('-'), slash = text.find('/');
  const bool has_three = text.starts_with(kUnit) && dash < slash && slash != text.npos;
  const auto number = [&](size_t begin, size_t end) {
    return has_three ? number_in<uint64_t>(text.substr(begin, end - begin)) : std::nullopt;
  };
  const auto first = number(kUnit.size(), dash), last = number(dash + 1, slash);
  const bool is_of_file = text.ends_with("/*") || number(slash + 1, text.size()) == size;
  check(first == from && last && *last >= from && *last < to && is_of_file,
        "{}: the server sends the range {}, expected bytes {}-{}/{}; pull again later", what,
        in_quotes(header), from, to - 1, size);
  return *last + 1;
}

#if OCTET_HAS_CURL

namespace {

constexpr int kMostRedirects = 10;
constexpr long kConnectSeconds = 20;
constexpr size_t kMostHeaders = 200;
constexpr size_t kMostSkipped = 64 * 1024;
constexpr long kBufferBytes = 256 * 1024;

void start_curl() {
  static std::once_flag started;
  std::call_once(started, [] {
    check(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, "libcurl cannot be started");
  });
}

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, FreeList>;

void add_header(HeaderList& list, const std::string& line) {
  curl_slist* longer = curl_slist_append(list.get(), line.c_str());
  if (longer == nullptr) throw std::bad_alloc();
  (void)list.release();
  list.reset(longer);
}

// Whether enough comes, over one stretch of time after another.
class SpeedWatch {
 public:
  explicit SpeedWatch(const HttpSettings& settings)
      : stretch_(settings.idle_seconds), received_(&settings.received) {
    if (*received_) before_ = (*received_)();
  }

  bool is_too_slow(int64_t received_here) {
    const auto now = Clock::now();
    if (now - begin_ < stretch_) return false;
    begin_ = now;
    const int64_t received = *received_ ? (*received_)() : received_here;
    return received - std::exchange(before_, received) < kSlowestBytesPerSecond * stretch_.count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::chrono::seconds stretch_;
  const std::function<int64_t()>* received_;
  Clock::time_point begin_ = Clock::now();
  int64_t before_ = 0;
};

// What goes on during one transfer, for libcurl's callbacks. An exception must not pass through
// libcurl: it waits here.
struct Transfer {
  const std::function<bool(const HttpAnswer&)>& on_head;
  const std::function<void(std::span<const std::byte>)>& on_body;
  const std::function<bool()>& is_wanted;
  SpeedWatch& speed;
  CURL* handle;
  HttpAnswer answer;
  std::exception_ptr error;
  bool head_was_shown = false;
  bool skips_body = false;
  bool was_stopped = false;
  bool was_slow = false;
  size_t skipped = 0;

  bool is_redirect() const {
    const int status = answer.status;
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
  }

  // Once, when the headers are complete. A redirect's body is nobody's.
  void show_head() {
    if (std::exchange(head_was_shown, true)) return;
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    answer.status = static_cast<int>(status);
    curl_off_t seconds = 0;
    curl_easy_getinfo(handle, CURLINFO_RETRY_AFTER, &seconds);
    answer.retry_after_seconds = static_cast<double>(std::max<curl_off_t>(seconds, 0));
    skips_body = is_redirect() || !on_head(answer);
  }
};

void note_header(std::string_view line, HttpAnswer& answer) {
  // The status line: of this answer, or of a provisional or a proxy's one before it.
  if (line.rfind("HTTP/", 0) == 0) answer.headers.clear();
  const size_t colon = line.find(':');
  if (colon == line.npos || answer.headers.size() >= kMostHeaders) return;
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string_view value = line.substr(colon + 1);
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!value.empty() && is_space(value.front())) value.remove_prefix(1);
  while (!value.empty() && is_space(value.back())) value.remove_suffix(1);
  answer.headers[name] = std::string(value);
}

size_t take_header(char* text, size_t one, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  try {
    note_header({text, one * count}, transfer.answer);
    return one * count;
  } catch (...) {
    transfer.error = std::current_exception();
    return 0;
  }
}

size_t take_body(char* bytes, size_t one, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const size_t size = one * count;
  try {
    transfer.show_head();
    if (transfer.skips_body) {
      // A short one is read to its end, which keeps the connection; 0 ends the transfer.
      transfer.skipped += size;
      return transfer.skipped <= kMostSkipped ? size : 0;
    }
    if (transfer.on_body) transfer.on_body(std::as_bytes(std::span(bytes, size)));
    return size;
  } catch (...) {
    transfer.error = std::current_exception();
    return 0;
  }
}

int ask_to_go_on(void* user, curl_off_t, curl_off_t received, curl_off_t, curl_off_t) {
  auto& transfer = *static_cast<Transfer*>(user);
  try {
    transfer.was_stopped = transfer.is_wanted && !transfer.is_wanted();
    transfer.was_slow = !transfer.was_stopped && transfer.speed.is_too_slow(received);
    if (!transfer.was_stopped && !transfer.was_slow) return 0;
  } catch (...) {
    transfer.error = std::current_exception();
  }
  return 1;
}

// Worth another attempt; the rest (a wrong URL, a certificate that is not trusted) stays wrong.
bool is_transient(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_WEIRD_SERVER_REPLY: return true;
    default: return false;
  }
}

// libcurl's words on a proxy that it cannot use repeat the variable, its password included.
bool is_about_proxy(CURLcode code, std::string_view details) {
  return code == CURLE_COULDNT_RESOLVE_PROXY || details.starts_with("Unsupported proxy") ||
         details.find('@') != details.npos;
}

// libcurl looks up each host in a thread of its own, which a limit of threads may forbid.
bool lacks_thread(CURLcode code, std::string_view details) {
  return code == CURLE_COULDNT_RESOLVE_HOST && details.find("thread failed") != details.npos;
}

[[noreturn]] void fail_as(CURLcode code, const std::string& url, const char* details) {
  if (code == CURLE_OUT_OF_MEMORY) {
    // So libcurl 7 calls a line of a header, too, that passes its limit.
    const std::vector<std::byte> room(size_t{4} << 20);
    fail("{}: the server sends a header that is too long; is HF_ENDPOINT right?", shown(url));
  }
  const bool is_of_proxy = is_about_proxy(code, details);
  const bool is_plain = *details != '\0' && !is_of_proxy;
  const char* hint = "is there a network? With one, pull again: it resumes";
  if (code == CURLE_PEER_FAILED_VERIFICATION) {
    hint = "is there a proxy in between, or are the ca-certificates missing?";
  } else if (is_of_proxy) {
    hint = "check http_proxy, https_proxy and all_proxy";
  }
  const std::string sentence = fmt::format(
      "{}: {}; {}", shown(url), one_line(is_plain ? details : curl_easy_strerror(code)), hint);
  const bool is_unreachable = code == CURLE_COULDNT_RESOLVE_HOST ||
                              code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_COULDNT_CONNECT;
  if (is_unreachable) throw Unreachable(sentence);
  if (is_transient(code)) throw Transient(sentence);
  throw Error(sentence);
}

std::string scheme_of(const std::string& url) { return url.substr(0, url.find(':')); }

}  // namespace

void require_http() { start_curl(); }

struct HttpConnection::State {
  HttpSettings settings;
  CURL* handle = nullptr;
  char details[CURL_ERROR_SIZE] = {};
};

HttpConnection::HttpConnection(HttpSettings settings) : state_(std::make_unique<State>()) {
  start_curl();
  state_->settings = std::move(settings);
  state_->handle = curl_easy_init();
  if (state_->handle == nullptr) throw std::bad_alloc();
}

HttpConnection::~HttpConnection() { curl_easy_cleanup(state_->handle); }

HttpAnswer HttpConnection::send(const HttpRequest& request,
                                const std::function<bool(const HttpAnswer&)>& on_head,
                                const std::function<void(std::span<const std::byte>)>& on_body) {
  CURL* handle = state_->handle;
  const auto set = [handle](CURLoption option, auto value) {
    const CURLcode code = curl_easy_setopt(handle, option, value);
    if (code == CURLE_OUT_OF_MEMORY) throw std::bad_alloc();
    check(code == CURLE_OK, "libcurl does not take option {}; install a newer one",
          static_cast<int>(option));
  };
  std::string url = request.url;
  for (int redirects = 0;; ++redirects) {
    const std::string origin = origin_of(url);
    curl_easy_reset(handle);  // keeps the connections
    const HttpSettings& settings = state_->settings;
    SpeedWatch speed(settings);
    Transfer transfer{on_head, on_body, settings.is_wanted, speed, handle, {}, {}};
    transfer.answer.url = url;
    HeaderList headers;
    add_header(headers, "Accept-Encoding: identity");
    const bool is_home = !request.home.empty() && origin == origin_of(request.home);
    if (is_home && !request.token.empty()) {
      add_header(headers, "Authorization: Bearer " + request.token);
    } else if (is_home && !request.user.empty()) {
      set(CURLOPT_USERNAME, request.user.c_str());
      set(CURLOPT_PASSWORD, request.password.c_str());
    }
    std::string range;
    if (request.bytes) {
      range = fmt::format("{}-{}", request.bytes->from, request.bytes->to - 1);
      set(CURLOPT_RANGE, range.c_str());
    }
    state_->details[0] = '\0';
    set(CURLOPT_URL, url.c_str());
#if LIBCURL_VERSION_NUM >= 0x075500
    set(CURLOPT_PROTOCOLS_STR, "http,https");
#else
    set(CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    set(CURLOPT_HTTPHEADER, headers.get());
    set(CURLOPT_USERAGENT, "octet/" OCTET_VERSION);
    set(CURLOPT_ERRORBUFFER, state_->details);
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_NOBODY, request.head_only ? 1L : 0L);
    // Only a hint: libcurl 7.88 refuses it after a transfer that could not resolve its host.
    curl_easy_setopt(handle, CURLOPT_BUFFERSIZE, kBufferBytes);
    set(CURLOPT_CONNECTTIMEOUT, std::min(kConnectSeconds, settings.idle_seconds));
    set(CURLOPT_TIMEOUT, request.most_seconds);
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, settings.idle_seconds);
    set(CURLOPT_HEADERFUNCTION, take_header);
    set(CURLOPT_HEADERDATA, static_cast<void*>(&transfer));
    set(CURLOPT_WRITEFUNCTION, take_body);
    set(CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
    set(CURLOPT_XFERINFOFUNCTION, ask_to_go_on);
    set(CURLOPT_XFERINFODATA, static_cast<void*>(&transfer));
    set(CURLOPT_NOPROGRESS, 0L);
    CURLcode code = curl_easy_perform(handle);
    HeaderList hosts;
    const std::string host = lacks_thread(code, state_->details) ? look_up(url) : "";
    if (!host.empty()) {
      add_header(hosts, host);
      set(CURLOPT_RESOLVE, hosts.get());
      state_->details[0] = '\0';
      speed = SpeedWatch(settings);  // looking up may have taken long
      code = curl_easy_perform(handle);
    }
    if (transfer.error) std::rethrow_exception(transfer.error);
    if (transfer.was_stopped) return {};
    if (transfer.was_slow && !transfer.skips_body) {
      throw Transient(fmt::format(
          "{}: less than {} bytes a second came for {} s; is the network slow? What was "
          "fetched is kept, pull again to resume; HF_HUB_DOWNLOAD_TIMEOUT sets the seconds",
          shown(url), kSlowestBytesPerSecond, settings.idle_seconds));
    }
    if (code != CURLE_OK && !transfer.skips_body) fail_as(code, url, state_->details);
    transfer.show_head();  // there was no body
    if (!transfer.is_redirect()) return transfer.answer;
    char* next = nullptr;
    curl_easy_getinfo(handle, CURLINFO_REDIRECT_URL, &next);
    // libcurl says so only behind the body's end, which may not have been waited for.
    const std::string next_url =
        next != nullptr ? next : joined(url, transfer.answer.header("location"));
    check(!next_url.empty(), "{}: redirects without a target", shown(url));
    if (request.head_only && origin_of(next_url) != origin) return transfer.answer;
    check(redirects < kMostRedirects, "{}: more than {} redirects; is HF_ENDPOINT right?",
          shown(request.url), kMostRedirects);
    const std::string next_scheme = scheme_of(origin_of(next_url));
    check(scheme_of(url) == next_scheme || next_scheme == "https",
          "{}: redirects to {}, which is not encrypted; is HF_ENDPOINT right?", shown(url),
          shown(next_url));
    url = next_url;
  }
}

#else

struct HttpConnection::State {};

void require_http() {
  fail(
      "this build has no libcurl or no OpenSSL; install libcurl4-openssl-dev and libssl-dev and "
      "build again");
}

std::string origin_of(const std::string&) {
  require_http();
  return {};
}
Address address_of(const std::string&) {
  require_http();
  return {};
}
HttpConnection::HttpConnection(HttpSettings) { require_http(); }
HttpConnection::~HttpConnection() = default;
HttpAnswer HttpConnection::send(const HttpRequest&, const std::function<bool(const HttpAnswer&)>&,
                                const std::function<void(std::span<const std::byte>)>&) {
  return {};
}

#endif

}  // namespace octet::hub
