// HTTP/1.1 over libmicrohttpd: connections, limits and TLS. Knows nothing of pictures.
//
// A few threads serve all connections; one that is idle, slow or waits for an answer holds none.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/http/exchange.h"

namespace octet::server::http {

struct Limits {
  size_t body_bytes = size_t{1} << 20;
  size_t header_bytes = size_t{32} << 10;
  int connections = 2048;
  int connections_per_address = 0;         // 0: as many as all together
  int streams = 256;                       // open at once
  size_t stream_bytes = size_t{64} << 20;  // that a reader may let wait
  // Of all answers and streams together, not yet taken by their readers. Beyond it, those that have
  // taken longest end.
  size_t unsent_bytes = size_t{1} << 30;
  int idle_s = 60;     // a connection between requests
  int request_s = 20;  // from a request's first byte to its last, however they dribble
  int answer_s = 120;  // without a byte of a waiting answer taken
};

struct ServerOptions {
  std::string address = "127.0.0.1";               // IPv4 or IPv6
  uint16_t port = 0;                               // 0: any that is free
  std::string certificate = {}, private_key = {};  // PEM; both or none
  int threads = 2;
  Limits limits = {};
  // Asked when a request's head is complete, before its body is read: an answer refuses it.
  std::function<std::optional<Response>(const Request& head)> admit = {};
  // Called with each complete request, on a thread that serves others, too: must not wait.
  std::function<void(std::shared_ptr<Exchange>)> handle = {};
  // What the server itself refuses (a bad request line, limits): the body that goes with a status.
  std::function<Response(int status, const std::string& sentence)> refusal = {};
  // After each answer, for the log: status, bytes sent, seconds. 499: the client left before there
  // was one.
  std::function<void(const Request& head, int status, uint64_t bytes, double seconds)> done = {};
};

struct ServerCounts {
  int connections = 0, streams = 0;
  uint64_t unsent_bytes = 0;
  uint64_t refused = 0;       // by limits
  uint64_t disconnected = 0;  // clients that left before the end of their answer
};

class HttpServer {
 public:
  // Listens from here on. Throws octet::Error (with address and port) if it cannot.
  explicit HttpServer(ServerOptions options);
  ~HttpServer();  // stop(0)
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;
  ServerCounts counts() const;
  void stop_listening();  // no new connections; those that exist go on
  // Waits up to `seconds` for answers that are under way, and closes what is left.
  void stop(double seconds);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octet::server::http
