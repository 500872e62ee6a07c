// The server of apps/server/http with a short answer and a stream that never ends, for compare.py.
//
//   microhttpd_server     prints its port, and serves until its input ends
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/http/http_server.h"

namespace {

using namespace octet::server::http;  // NOLINT: this file is about it

}  // namespace

int main() {
  std::mutex mutex;
  std::vector<std::shared_ptr<Stream>> streams;
  ServerOptions options;
  options.limits.connections = 4096;
  options.limits.streams = 4096;
  options.handle = [&](const std::shared_ptr<Exchange>& exchange) {
    if (exchange->request().path != "/events") {
      exchange->answer({.status = 200,
                        .headers = {{"Content-Type", "application/json"}},
                        .body = std::make_shared<const std::string>(R"({"status":"ok"})")});
      return;
    }
    auto stream = exchange->stream(200, {{"Content-Type", "text/event-stream"}});
    stream->write("data: first\n\n");
    const std::lock_guard lock(mutex);
    streams.push_back(std::move(stream));
  };
  HttpServer server(options);
  std::printf("%d\n", server.port());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  server.stop(0);
}
