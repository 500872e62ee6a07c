// libFuzzer target: whatever bytes a client sends, a handler sees only requests that are well
// formed, and the server goes on serving.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "server/http/head.h"
#include "server/http/http_server.h"

namespace {

using namespace octet::server::http;  // NOLINT: this file is about it

constexpr size_t kLongestBody = 2000;
constexpr int kInputsBetweenChecks = 64;

void demand(bool condition) {
  if (!condition) std::abort();
}

bool is_text(const std::string& text) {
  return is_valid_utf8(text) && text.find('\0') == text.npos;
}

void check(const Request& request) {
  demand(is_token(request.method) && request.id.starts_with("req-"));
  demand(is_text(request.path) && (request.path.starts_with("/") || request.path == "*"));
  for (const auto& [name, value] : request.query) demand(is_text(name) && is_text(value));
  for (const auto& [name, value] : request.headers) {
    demand(is_token(name) && is_header_value(value));
  }
  demand(request.body.size() <= kLongestBody);
  // The length was said once, and is right.
  if (const std::string* length = request.header("content-length")) {
    demand(std::stoul(*length) == request.body.size());
    demand(request.header("transfer-encoding") == nullptr);
  }
}

HttpServer& server() {
  // Never destroyed: the process ends without asking its threads.
  static HttpServer* const only = [] {
    ServerOptions options;
    options.limits.body_bytes = kLongestBody;
    options.limits.header_bytes = 4096;
    options.handle = [](const std::shared_ptr<Exchange>& exchange) {
      check(exchange->request());
      const auto body = std::make_shared<const std::string>("seen");
      if (exchange->request().path.size() % 2 == 0) {
        const auto stream = exchange->stream(200, {});
        stream->write(*body);
        stream->end();
      } else {
        exchange->answer({.status = 200, .headers = {}, .body = body});
      }
    };
    return new HttpServer(options);
  }();
  return *only;
}

std::string talk(std::string_view bytes, bool waits_for_answer) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(server().port());
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  demand(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
  demand(bytes.empty() || send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0);
  char text[12] = {};
  if (waits_for_answer) demand(recv(fd, text, sizeof text, MSG_WAITALL) == sizeof text);
  // With a reset: ports that wait for late bytes would run out.
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close(fd);
  return {text, sizeof text};
}

void check_head(std::string_view bytes) {
  Request request{.id = "req-", .method = "GET"};
  request.headers = {{"host", "a"}, {"content-length", std::string(bytes)}};
  Framing framing;
  if (!read_framing(request, true, framing)) demand(!framing.chunked);
  if (!read_target(bytes, request)) {
    demand(is_text(request.path));
    for (const auto& [name, value] : request.query) demand(is_text(name) && is_text(value));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_head(bytes);
  talk(bytes, false);
  static int inputs = 0;
  if (++inputs % kInputsBetweenChecks == 0) {
    const std::string sound = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    demand(talk(sound, true) == "HTTP/1.1 200");
  }
  return 0;
}
