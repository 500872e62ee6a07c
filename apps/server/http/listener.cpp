#include "server/http/listener.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "octet/error.h"

namespace octet::server::http {
namespace {

constexpr int kBacklog = 1024;

[[noreturn]] void fail_to_listen(const std::string& address, uint16_t port,
                                 const std::string& reason) {
  throw Error(fmt::format("cannot listen on {} port {}: {}; choose another address or port",
                          address, port, reason));
}

std::string text_of(int error) { return std::generic_category().message(error); }

uint16_t port_of(int socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return 0;
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                           : reinterpret_cast<sockaddr_in&>(bound).sin_port);
}

}  // namespace

OwnedFd& OwnedFd::operator=(OwnedFd&& other) noexcept {
  reset();
  fd_ = other.release();
  return *this;
}

int OwnedFd::release() { return std::exchange(fd_, -1); }

void OwnedFd::reset() {
  if (fd_ >= 0) close(release());
}

Listener listen_on(const std::string& address, uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int status = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (status != 0) fail_to_listen(address, port, gai_strerror(status));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);

  Listener listener;
  listener.socket =
      OwnedFd(socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int fd = listener.socket.get();
  if (fd < 0) fail_to_listen(address, port, text_of(errno));
  const int on = 1, off = 0;
  // A server that is started again need not wait until the connections of the last are forgotten.
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (found->ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, kBacklog) != 0) {
    fail_to_listen(address, port, text_of(errno));
  }
  listener.port = port_of(fd);
  return listener;
}

std::string address_text(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
  } else if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    const bool is_v4 = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr);
    inet_ntop(is_v4 ? AF_INET : AF_INET6, v6.sin6_addr.s6_addr + (is_v4 ? 12 : 0), text.data(),
              text.size());
  }
  return text.data();
}

void allow_open_files(uint64_t count) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count) return;
  limit.rlim_cur = std::min<rlim_t>(count, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace octet::server::http
