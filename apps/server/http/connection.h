// One TCP connection. libmicrohttpd owns its socket and serves it on one of its threads; this is
// what the other threads may ask of it: to go on with a request that waits, or to end.
//
// A function called "...locked" needs `mutex` held. While it is held libmicrohttpd may be asked to
// suspend or resume, and a socket that is not `closed` is open; callbacks of the options are never
// called.
#pragma once

#include <microhttpd.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "server/http/core.h"

namespace octet::server::http {

class Transaction;

// What the kernel has counted on a connection.
struct Traffic {
  uint64_t received = 0, acknowledged = 0;
  bool has_unsent = false;  // bytes that the client has not taken
};

class Connection {
 public:
  enum class Phase { kIdle, kReading, kWaiting, kAnswering, kStreaming };

  Connection(std::shared_ptr<Core> core, int fd, uint64_t id, std::string peer);

  const std::shared_ptr<Core> core;
  const int fd;
  const uint64_t id;
  const std::string peer;

  std::mutex mutex;
  MHD_Connection* handle = nullptr;  // from when libmicrohttpd has begun with it
  bool closed = false;
  bool gone = false;     // the client has left, or must
  bool broken = false;   // it must
  bool lingers = false;  // bytes of a refused body may still be on their way
  std::string target;    // of the request line, before libmicrohttpd decodes it
  std::shared_ptr<Transaction> transaction;

  void enter_locked(Phase phase);
  Phase phase_locked() const { return phase_; }
  // On libmicrohttpd's thread, in a callback of this connection: it goes on after wake_locked().
  // False if the server stops, or the client has left: then it must end now.
  bool suspend_locked();
  void wake_locked();
  // Shuts the socket down; what is under way ends on libmicrohttpd's thread.
  void break_off_locked();
  // Sends what fits into the socket, past libmicrohttpd: only while it reads.
  void send_raw_locked(const std::string& text);
  void push_locked();  // sends what the kernel holds back for more
  Traffic traffic_locked() const;

  // What the clock says: refuses or ends what takes too long.
  void check_clock(Clock::time_point now);
  void client_left();  // the client has closed its side

 private:
  void refuse_slow(std::unique_lock<std::mutex>& lock);

  Phase phase_ = Phase::kIdle;
  bool suspended_ = false;
  Clock::time_point since_ = Clock::now();  // of the phase, or of the last progress in it
  Clock::time_point left_ = {};
  Traffic before_ = {};
};

// An answer as bytes, for those that libmicrohttpd cannot send.
std::string raw_answer(const Response& response, const std::string& request_id);

}  // namespace octet::server::http
