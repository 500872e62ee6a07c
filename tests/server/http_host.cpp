#include "server/http_host.h"

#include <filesystem>
#include <utility>

namespace octet::server::http {

HttpHost::HttpHost(ServerOptions options) : options_(std::move(options)) {
  options_.handle = [this](std::shared_ptr<Exchange> exchange) { handle(exchange); };
  options_.refusal = [](int status, const std::string& sentence) {
    return text_response(status, "refused: " + sentence);
  };
  options_.done = [this](const Request& head, int status, uint64_t bytes, double) {
    const std::lock_guard lock(mutex_);
    log_.push_back({head.id, head.path, status, bytes});
  };
  on("/echo", [](const std::shared_ptr<Exchange>& exchange) {
    const Request& request = exchange->request();
    exchange->answer(text_response(200, request.method + " " + request.body));
  });
}

HttpHost::~HttpHost() {
  server_.reset();
  for (std::thread& thread : threads_) thread.join();
}

void HttpHost::start() { server_ = std::make_unique<HttpServer>(options_); }

void HttpHost::handle(const std::shared_ptr<Exchange>& exchange) {
  ++handled_;
  const auto found = handlers_.find(exchange->request().path);
  if (found != handlers_.end()) {
    found->second(exchange);
  } else {
    exchange->answer(text_response(200, "path " + exchange->request().path));
  }
}

void HttpHost::later(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  threads_.emplace_back(std::move(work));
}

std::vector<LoggedAnswer> HttpHost::log() const {
  const std::lock_guard lock(mutex_);
  return log_;
}

bool HttpHost::logs(int status) const {
  return comes_true([&] {
    for (const LoggedAnswer& each : log()) {
      if (each.status == status) return true;
    }
    return false;
  });
}

int count_threads() {
  int count = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
    ++count;
  }
  return count;
}

}  // namespace octet::server::http
