// The thread beside libmicrohttpd's: accepts connections, notices clients that leave while they
// wait (libmicrohttpd does not look at suspended connections), looks at the clock, and drains
// connections whose client may still be sending when its request has been refused.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "server/http/connections.h"
#include "server/http/listener.h"

namespace octet::server::http {

class Watcher {
 public:
  // Gives each connection that is within the limits to `serve`, with its address.
  using Serve = std::function<void(int fd, const sockaddr_storage& address, socklen_t size)>;

  Watcher(std::shared_ptr<Core> core, Connections& connections, OwnedFd listening, Serve serve);
  ~Watcher() { stop(); }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  void stop_listening();  // returns when no more connections are accepted
  void stop();
  // Takes over a socket that is about to be closed: to close it at once could take back what has
  // been sent to a client that is still sending.
  void drain(OwnedFd socket);

 private:
  struct Drained {
    OwnedFd socket;
    Clock::time_point until;
    size_t room;
  };

  void run();
  void handle(uint64_t token);
  void accept_some();
  void turn_away(OwnedFd socket);
  void take_over();
  void read_drained(uint64_t token);
  void check_clocks();
  void end_slow_readers();
  bool watch(int fd, uint32_t events, uint64_t token);
  void wake();

  const std::shared_ptr<Core> core_;
  Connections& connections_;
  const Serve serve_;
  OwnedFd epoll_, wakeup_;

  std::mutex mutex_;
  bool stopping_ = false;
  OwnedFd listening_;
  std::vector<OwnedFd> to_drain_;

  // The thread's own.
  bool listens_ = false;
  uint64_t drain_serial_ = 0;
  std::unordered_map<uint64_t, Drained> drained_;
  std::thread thread_;
};

}  // namespace octet::server::http
