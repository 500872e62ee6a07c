#include "server/http/http_server.h"

#include <fmt/format.h>
#include <microhttpd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <utility>

#include "octet/error.h"
#include "server/http/transaction.h"
#include "server/http/watcher.h"

namespace octet::server::http {
namespace {

// libmicrohttpd answers a head that does not even fit here with a page of its own.
size_t memory_of(const Limits& limits) { return 2 * limits.header_bytes + (size_t{32} << 10); }

std::shared_ptr<Connection>& connection_of(MHD_Connection* handle) {
  const auto* info = MHD_get_connection_info(handle, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return *static_cast<std::shared_ptr<Connection>*>(info->socket_context);
}

// --- what libmicrohttpd calls: C, so that nothing may be thrown
// -----------------------------------

void* on_target(void*, const char* target, MHD_Connection* handle) {
  try {
    connection_of(handle)->target = target ? target : "";
  } catch (...) {
    connection_of(handle)->target.clear();  // which is refused as malformed
  }
  return nullptr;
}

// It is decoded in head.cpp, where a zero byte is an error and not an end.
size_t leave_escaped(void*, MHD_Connection*, char* text) { return std::string_view(text).size(); }

using Context = std::shared_ptr<Transaction>;

MHD_Result on_request(void*, MHD_Connection* handle, const char*, const char* method,
                      const char* version, const char* data, size_t* size, void** context) {
  try {
    if (*context == nullptr) {
      auto first = std::make_unique<Context>(std::make_shared<Transaction>(connection_of(handle)));
      *context = first.get();
      return (*first.release())->begin(method, version);
    }
    Transaction& transaction = **static_cast<Context*>(*context);
    if (*size > 0) return transaction.read_body(data, std::exchange(*size, 0));
    return transaction.go_on();
  } catch (...) {
    return MHD_NO;  // out of memory: this connection ends
  }
}

void on_completed(void*, MHD_Connection*, void** context, MHD_RequestTerminationCode termination) {
  const std::unique_ptr<Context> owned(static_cast<Context*>(std::exchange(*context, nullptr)));
  if (owned) (*owned)->complete(termination == MHD_REQUEST_TERMINATED_COMPLETED_OK);
}

std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file || text.empty()) {
    throw Error(fmt::format("{}: cannot be read; expected a certificate or key as PEM", path));
  }
  return text;
}

}  // namespace

struct HttpServer::State {
  explicit State(ServerOptions options) : core(std::make_shared<Core>(std::move(options))) {}

  void start();
  void start_daemon();
  void serve(int fd, const sockaddr_storage& address, socklen_t size);
  static void on_message(void* state, const char* format, va_list arguments);
  static void on_connection(void* state, MHD_Connection* handle, void** context,
                            MHD_ConnectionNotificationCode event);
  void begin(MHD_Connection* handle, void** context);
  void close(void** context);

  const std::shared_ptr<Core> core;
  Connections connections;
  std::string certificate, private_key;
  MHD_Daemon* daemon = nullptr;
  std::atomic<bool> starts{true};
  std::string message = "it gives no reason";
  std::unique_ptr<Watcher> watcher;
  uint16_t port = 0;
  bool stopped = false;
};

void HttpServer::State::start() {
  const ServerOptions& options = core->options;
  if (options.certificate.empty() != options.private_key.empty()) {
    throw Error("a TLS server needs both a certificate and its private key");
  }
  if (core->is_tls) {
    if (MHD_is_feature_supported(MHD_FEATURE_TLS) == MHD_NO) {
      throw Error("this build of libmicrohttpd has no TLS; serve without a certificate");
    }
    certificate = text_of_file(options.certificate);
    private_key = text_of_file(options.private_key);
  }
  // Besides connections: models, pictures and what is being drained.
  allow_open_files(static_cast<uint64_t>(options.limits.connections) + 512);
  Listener listener = listen_on(options.address, options.port);
  port = listener.port;
  start_daemon();
  try {
    watcher = std::make_unique<Watcher>(core, connections, std::move(listener.socket),
                                        [this](int fd, const sockaddr_storage& address,
                                               socklen_t size) { serve(fd, address, size); });
  } catch (...) {
    MHD_stop_daemon(daemon);
    throw;
  }
}

void HttpServer::State::start_daemon() {
  const Limits& limits = core->options.limits;
  const auto threads = static_cast<unsigned>(std::max(core->options.threads, 1));
  // Connections are accepted by the watcher, which knows the limits. No clock of libmicrohttpd
  // runs: it starts again with each byte, and stands still while a connection is suspended.
  unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_NO_LISTEN_SOCKET |
                   MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
  std::array<MHD_OptionItem, 6> more{};
  size_t count = 0;
  if (threads > 1) more[count++] = {MHD_OPTION_THREAD_POOL_SIZE, threads, nullptr};
  if (core->is_tls) {
    flags |= MHD_USE_TLS;
    more[count++] = {MHD_OPTION_HTTPS_MEM_CERT, 0, certificate.data()};
    more[count++] = {MHD_OPTION_HTTPS_MEM_KEY, 0, private_key.data()};
  }
  more[count] = {MHD_OPTION_END, 0, nullptr};
  daemon = MHD_start_daemon(flags, 0, nullptr, nullptr, &on_request, nullptr,  //
                            MHD_OPTION_EXTERNAL_LOGGER, &State::on_message, this,
                            // A thread of the pool could be given all of them.
                            MHD_OPTION_CONNECTION_LIMIT,
                            threads * static_cast<unsigned>(limits.connections + 1),
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory_of(limits),      //
                            MHD_OPTION_URI_LOG_CALLBACK, &on_target, nullptr,           //
                            MHD_OPTION_UNESCAPE_CALLBACK, &leave_escaped, nullptr,      //
                            MHD_OPTION_NOTIFY_COMPLETED, &on_completed, nullptr,        //
                            MHD_OPTION_NOTIFY_CONNECTION, &State::on_connection, this,  //
                            MHD_OPTION_ARRAY, more.data(), MHD_OPTION_END);
  starts = false;
  if (daemon == nullptr) {
    message.erase(message.find_last_not_of(" .\n") + 1);
    throw Error(fmt::format("libmicrohttpd does not start: {}{}", message,
                            core->is_tls ? "; are certificate and key valid PEM?" : ""));
  }
}

// Later messages are about single connections, whose ends are counted.
void HttpServer::State::on_message(void* state, const char* format, va_list arguments) {
  auto& self = *static_cast<State*>(state);
  if (!self.starts) return;
  std::array<char, 512> line{};
  std::vsnprintf(line.data(), line.size(), format, arguments);
  self.message = line.data();
}

void HttpServer::State::serve(int fd, const sockaddr_storage& address, socklen_t size) {
  const auto connection = connections.by_fd(fd);
  // It closes the socket also if it fails; another connection may have its number by then.
  if (MHD_add_connection(daemon, fd, reinterpret_cast<const sockaddr*>(&address), size) == MHD_NO) {
    connections.remove(*connection);
  }
}

void HttpServer::State::on_connection(void* state, MHD_Connection* handle, void** context,
                                      MHD_ConnectionNotificationCode event) {
  auto& self = *static_cast<State*>(state);
  if (event == MHD_CONNECTION_NOTIFY_STARTED) {
    self.begin(handle, context);
  } else {
    self.close(context);
  }
}

void HttpServer::State::begin(MHD_Connection* handle, void** context) {
  const auto* info = MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CONNECTION_FD);
  auto connection = connections.by_fd(info->connect_fd);
  *context = new std::shared_ptr<Connection>(connection);
  const std::lock_guard lock(connection->mutex);
  connection->handle = handle;
}

void HttpServer::State::close(void** context) {
  const std::unique_ptr<std::shared_ptr<Connection>> owned(
      static_cast<std::shared_ptr<Connection>*>(std::exchange(*context, nullptr)));
  Connection& connection = **owned;
  bool lingers = false;
  {
    // From here on nobody touches the socket, which libmicrohttpd closes next.
    const std::lock_guard lock(connection.mutex);
    connection.closed = connection.gone = true;
    connection.handle = nullptr;
    lingers = connection.lingers && !core->stopping;
  }
  if (lingers) watcher->drain(OwnedFd(dup(connection.fd)));
  connections.remove(connection);
}

HttpServer::HttpServer(ServerOptions options)
    : state_(std::make_unique<State>(std::move(options))) {
  state_->start();
}

HttpServer::~HttpServer() { stop(0); }

uint16_t HttpServer::port() const { return state_->port; }

ServerCounts HttpServer::counts() const {
  return {.connections = static_cast<int>(state_->connections.size()),
          .streams = state_->core->streams,
          .unsent_bytes = state_->core->unsent.bytes(),
          .refused = state_->core->refused,
          .disconnected = state_->core->disconnected};
}

void HttpServer::stop_listening() { state_->watcher->stop_listening(); }

void HttpServer::stop(double seconds) {
  if (std::exchange(state_->stopped, true)) return;
  Core& core = *state_->core;
  stop_listening();
  core.draining = true;
  const auto limit = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e6)));
  core.wait_for_requests(Clock::now() + limit);
  core.stopping = true;
  // libmicrohttpd must not be stopped while connections are suspended.
  for (const auto& connection : state_->connections.all()) {
    const std::lock_guard lock(connection->mutex);
    connection->break_off_locked();
  }
  MHD_stop_daemon(state_->daemon);
  state_->watcher->stop();
  // What the callbacks hold may hold exchanges, and these the core.
  core.options = {};
}

}  // namespace octet::server::http
