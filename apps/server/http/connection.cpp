#include "server/http/connection.h"

#include <fmt/format.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <utility>

#include "server/http/answer.h"
#include "server/http/transaction.h"

namespace octet::server::http {

// After the end of what a client sends, until all of it has been read.
constexpr std::chrono::milliseconds kTimeToReadTheRest(200);

Connection::Connection(std::shared_ptr<Core> core_of_all, int socket, uint64_t number,
                       std::string address)
    : core(std::move(core_of_all)), fd(socket), id(number), peer(std::move(address)) {}

void Connection::enter_locked(Phase phase) {
  phase_ = phase;
  since_ = Clock::now();
  // Asked for only where check_clock() compares with it.
  if (phase != Phase::kReading && phase != Phase::kWaiting) before_ = traffic_locked();
}

bool Connection::suspend_locked() {
  if (core->stopping || gone || closed) return false;
  suspended_ = true;
  MHD_suspend_connection(handle);
  return true;
}

void Connection::wake_locked() {
  if (!suspended_) return;
  suspended_ = false;
  MHD_resume_connection(handle);
}

void Connection::break_off_locked() {
  gone = broken = true;
  if (closed) return;
  shutdown(fd, SHUT_RDWR);
  wake_locked();
}

void Connection::send_raw_locked(const std::string& text) {
  // An encrypted connection has no place for it.
  if (closed || core->is_tls) return;
  const ssize_t sent = send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  lingers = sent > 0;
}

void Connection::push_locked() {
  // libmicrohttpd sends heads with MSG_MORE; setting this option sends what waits for more.
  const int on = 1;
  if (!closed) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Traffic Connection::traffic_locked() const {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (closed || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return before_;
  return {.received = info.tcpi_bytes_received,
          .acknowledged = info.tcpi_bytes_acked,
          .has_unsent = info.tcpi_unacked > 0 || info.tcpi_notsent_bytes > 0};
}

void Connection::refuse_slow(std::unique_lock<std::mutex>& lock) {
  const std::string id_of_request = transaction ? transaction->request().id : new_request_id();
  lock.unlock();  // the options say what a refusal looks like
  const Refusal refusal{408,
                        fmt::format("the request took longer than {} seconds to arrive",
                                    core->options.limits.request_s),
                        true};
  const std::string text = raw_answer(core->answer_to(refusal), id_of_request);
  lock.lock();
  if (closed || gone || phase_ != Phase::kReading) return;  // it has arrived after all
  ++core->refused;
  if (transaction) transaction->note_status_locked(refusal.status);
  send_raw_locked(text);
  break_off_locked();
}

void Connection::check_clock(Clock::time_point now) {
  const Limits& limits = core->options.limits;
  std::unique_lock lock(mutex);
  if (closed || broken || handle == nullptr) return;
  // libmicrohttpd may have missed the end: it takes a read that got less than it could for the
  // last.
  const bool can_get_more = phase_ == Phase::kIdle || phase_ == Phase::kReading;
  if (gone && can_get_more && now - left_ > kTimeToReadTheRest) return break_off_locked();
  const double seconds = std::chrono::duration<double>(now - since_).count();
  switch (phase_) {
    case Phase::kIdle:
      if (core->draining || seconds > limits.idle_s) {
        break_off_locked();
      } else if (traffic_locked().received != before_.received) {
        enter_locked(Phase::kReading);
      }
      break;
    case Phase::kReading:
      if (seconds > limits.request_s) refuse_slow(lock);
      break;
    case Phase::kWaiting: break;  // how long an answer may take is for its handler to say
    case Phase::kAnswering:
    case Phase::kStreaming: {
      const Traffic traffic = traffic_locked();
      const bool waits = phase_ == Phase::kAnswering || traffic.has_unsent;
      if (!waits || traffic.acknowledged != before_.acknowledged) {
        before_ = traffic;
        since_ = now;
      } else if (seconds > limits.answer_s) {
        break_off_locked();
      }
    }
  }
}

void Connection::client_left() {
  const std::lock_guard lock(mutex);
  if (closed) return;
  // While it reads, libmicrohttpd sees it itself; an answer that is being sent may still arrive at
  // a client that closes only its own side.
  gone = true;
  left_ = Clock::now();
  if (phase_ == Phase::kStreaming) {
    break_off_locked();
  } else {
    wake_locked();
  }
}

std::string raw_answer(const Response& response, const std::string& request_id) {
  std::string text = fmt::format("HTTP/1.1 {} {}\r\nConnection: close\r\nX-Request-Id: {}\r\n",
                                 response.status, reason_phrase(response.status), request_id);
  for (const auto& [name, value] : response.headers) {
    if (is_sendable(name, value)) text += fmt::format("{}: {}\r\n", name, value);
  }
  const std::string& body = response.body ? *response.body : std::string();
  return text + fmt::format("Content-Length: {}\r\n\r\n", body.size()) + body;
}

}  // namespace octet::server::http
