// A server for tests, whose handler is chosen by path.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/http/http_server.h"
#include "server/http_client.h"

namespace octet::server::http {

inline Bytes bytes_of(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

inline Response text_response(int status, std::string text) {
  return {.status = status,
          .headers = {{"Content-Type", "text/plain"}},
          .body = bytes_of(std::move(text))};
}

// What the log was told of one request.
struct LoggedAnswer {
  std::string id, path;
  int status = 0;
  uint64_t bytes = 0;
};

class HttpHost {
 public:
  using Handler = std::function<void(std::shared_ptr<Exchange>)>;

  explicit HttpHost(ServerOptions options = {});
  ~HttpHost();  // stops the server, then waits for the threads of later()

  void on(const std::string& path, Handler handler) { handlers_[path] = std::move(handler); }
  void start();
  // Runs this on another thread.
  void later(std::function<void()> work);

  HttpServer& server() { return *server_; }
  void destroy_server() { server_.reset(); }
  HttpClient client() { return HttpClient(server_->port()); }
  std::vector<LoggedAnswer> log() const;
  bool logs(int status) const;  // soon
  int handled() const { return handled_; }

 private:
  void handle(const std::shared_ptr<Exchange>& exchange);

  ServerOptions options_;
  std::map<std::string, Handler> handlers_;
  mutable std::mutex mutex_;
  std::vector<LoggedAnswer> log_;
  std::atomic<int> handled_{0};
  std::unique_ptr<HttpServer> server_;
  std::vector<std::thread> threads_;
};

// Threads of this process.
int count_threads();

}  // namespace octet::server::http
