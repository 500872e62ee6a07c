#include "server/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace octet::server::http {
namespace {

// Far above anything that a test waits for on purpose.
constexpr int kPatienceMs = 20'000;

}  // namespace

HttpClient::HttpClient(uint16_t port, const std::string& address)
    : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  // All of 127.0.0.0/8 is this machine: a client may have another address, too.
  sockaddr_in from{};
  from.sin_family = AF_INET;
  inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  inet_pton(AF_INET, address.c_str(), &from.sin_addr);
  EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&from), sizeof from), 0);
  EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0) << errno;
}

HttpClient::HttpClient(HttpClient&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), buffer_(std::move(other.buffer_)) {}

HttpClient::~HttpClient() { leave(); }

bool HttpClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool HttpClient::read_more() {
  pollfd waiting{.fd = fd_, .events = POLLIN, .revents = 0};
  if (poll(&waiting, 1, kPatienceMs) <= 0) {
    ADD_FAILURE() << "nothing came for " << kPatienceMs << " ms";
    return false;
  }
  std::array<char, 1 << 16> bytes;
  const ssize_t got = recv(fd_, bytes.data(), bytes.size(), 0);
  if (got > 0) buffer_.append(bytes.data(), static_cast<size_t>(got));
  return got > 0;
}

std::string HttpClient::read_until(std::string_view word) {
  size_t end = buffer_.find(word);
  while (end == buffer_.npos) {
    if (!read_more()) return "";
    end = buffer_.find(word);
  }
  const std::string text = buffer_.substr(0, end + word.size());
  buffer_.erase(0, text.size());
  return text;
}

std::string HttpClient::read_to_end() {
  while (read_more()) {
  }
  return std::exchange(buffer_, "");
}

ClientAnswer HttpClient::answer(bool to_head) {
  ClientAnswer answer;
  std::string head = read_until("\r\n\r\n");
  if (head.size() < 12) return answer;
  const int status = std::stoi(head.substr(9, 3));
  for (size_t at = head.find("\r\n") + 2; at + 2 < head.size();) {
    const size_t end = head.find("\r\n", at);
    const size_t colon = head.find(':', at);
    std::string name = head.substr(at, colon - at);
    for (char& c : name) c = static_cast<char>(tolower(c));
    answer.headers[name] = head.substr(colon + 2, end - colon - 2);
    at = end + 2;
  }
  if (const auto length = answer.headers.find("content-length");
      length != answer.headers.end() && !to_head) {
    const size_t size = std::stoul(length->second);
    while (buffer_.size() < size) {
      if (!read_more()) return answer;
    }
    answer.body = buffer_.substr(0, size);
    buffer_.erase(0, size);
  } else if (answer.headers.contains("transfer-encoding")) {
    answer.was_chunked = true;
    for (;;) {
      const std::string line = read_until("\r\n");
      if (line.empty()) return answer;
      const size_t size = std::stoul(line, nullptr, 16);
      while (buffer_.size() < size + 2) {
        if (!read_more()) return answer;
      }
      answer.body += buffer_.substr(0, size);
      buffer_.erase(0, size + 2);
      if (size == 0) break;
    }
  }
  answer.status = status;
  return answer;
}

ClientAnswer HttpClient::get(const std::string& path) {
  send(get_request(path));
  return answer();
}

ClientAnswer HttpClient::post(const std::string& path, const std::string& body) {
  send("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
       std::to_string(body.size()) + "\r\n\r\n" + body);
  return answer();
}

bool HttpClient::ends_within(double seconds) {
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    const double left = seconds - seconds_since(start);
    pollfd waiting{.fd = fd_, .events = POLLIN, .revents = 0};
    if (left <= 0 || poll(&waiting, 1, static_cast<int>(left * 1000) + 1) <= 0) return false;
    std::array<char, 1 << 16> bytes;
    if (recv(fd_, bytes.data(), bytes.size(), 0) <= 0) return true;
  }
}

void HttpClient::close_own_side() { shutdown(fd_, SHUT_WR); }

void HttpClient::leave() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

void HttpClient::leave_rudely() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  leave();
}

void HttpClient::set_small_window() {
  const int size = 4096;
  setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

std::string get_request(const std::string& path) {
  return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace octet::server::http
