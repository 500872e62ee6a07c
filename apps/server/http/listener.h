// The socket that a server listens on.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

namespace octet::server::http {

// A file descriptor with an owner.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(other.release()) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept;
  ~OwnedFd() { reset(); }
  int get() const { return fd_; }
  int release();
  void reset();

 private:
  int fd_ = -1;
};

struct Listener {
  OwnedFd socket;
  uint16_t port = 0;
};

// Throws octet::Error with address and port.
Listener listen_on(const std::string& address, uint16_t port);

// Without its port; an IPv4 address as such, also where the socket is one of IPv6.
std::string address_text(const sockaddr_storage& address);

// Lets the process open so many files, as far as it may.
void allow_open_files(uint64_t count);

}  // namespace octet::server::http
