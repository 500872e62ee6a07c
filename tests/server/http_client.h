// A client for tests of the server: a blocking socket, and bytes as they are.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace octet::server::http {

struct ClientAnswer {
  int status = 0;                                   // 0: the connection ended before a whole answer
  std::map<std::string, std::string> headers = {};  // names in lower case
  std::string body = {};
  bool was_chunked = false;
};

class HttpClient {
 public:
  explicit HttpClient(uint16_t port, const std::string& address = "127.0.0.1");
  HttpClient(HttpClient&& other) noexcept;
  ~HttpClient();

  // False if the server has closed the connection.
  bool send(std::string_view bytes);
  ClientAnswer answer(bool to_head = false);
  // "GET path HTTP/1.1" with a Host.
  ClientAnswer get(const std::string& path);
  ClientAnswer post(const std::string& path, const std::string& body);
  // All bytes up to this word; an empty string if it does not come.
  std::string read_until(std::string_view word);
  std::string read_to_end();
  bool ends_within(double seconds);
  void close_own_side();
  void leave();         // as a program that ends
  void leave_rudely();  // with a reset
  void set_small_window();
  int fd() const { return fd_; }

 private:
  bool read_more();

  int fd_ = -1;
  std::string buffer_;
};

std::string get_request(const std::string& path);

double seconds_since(std::chrono::steady_clock::time_point start);

// Whether it comes true soon.
template <class Condition>
bool comes_true(const Condition& condition, double seconds = 5) {
  const auto start = std::chrono::steady_clock::now();
  while (!condition()) {
    if (seconds_since(start) > seconds) return false;
    struct timespec pause {
      .tv_sec = 0, .tv_nsec = 2'000'000
    };
    nanosleep(&pause, nullptr);
  }
  return true;
}

}  // namespace octet::server::http
