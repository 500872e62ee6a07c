#include "server/http/watcher.h"

#include <fmt/format.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <utility>

#include "octet/error.h"
#include "server/http/transaction.h"

namespace octet::server::http {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kWakeup = 0, kListening = 1;
// Connections have ids from 2^32 on; these come before them.
constexpr uint64_t kFirstDrained = 2, kLastDrained = UINT32_MAX;

constexpr milliseconds kClockPeriod(200);
constexpr milliseconds kDrainTime(2000);
constexpr size_t kDrainRoom = size_t{32} << 20;
constexpr size_t kMostDrained = 64;
// As many at a time, so that a burst of connections does not delay what the clock says.
constexpr int kAcceptedAtOnce = 64;
// Of an answer or a stream: so little may wait whatever the rest, since connections are limited.
constexpr uint64_t kSmallAnswer = uint64_t{64} << 10;
// What the kernel may hold for a client that does not read: the rest waits here, where it counts.
constexpr int kUnsentInKernel = 256 << 10;

void set_options(int fd) {
  const auto set = [fd](int level, int option, int value) {
    setsockopt(fd, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(IPPROTO_TCP, TCP_NOTSENT_LOWAT, kUnsentInKernel);
  // A client that lost its network while it waits for an answer is noticed after a minute.
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

}  // namespace

Watcher::Watcher(std::shared_ptr<Core> core, Connections& connections, OwnedFd listening,
                 Serve serve)
    : core_(std::move(core)),
      connections_(connections),
      serve_(std::move(serve)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wakeup_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      listening_(std::move(listening)) {
  listens_ = watch(listening_.get(), EPOLLIN, kListening);
  if (!watch(wakeup_.get(), EPOLLIN, kWakeup) || !listens_) {
    throw Error(fmt::format("the server cannot wait for connections: {}",
                            std::generic_category().message(errno)));
  }
  thread_ = std::thread([this] { run(); });
}

bool Watcher::watch(int fd, uint32_t events, uint64_t token) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = token;
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void Watcher::wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wakeup_.get(), &one, sizeof one);
}

void Watcher::stop_listening() {
  // The lock: accept_some() holds it, too.
  const std::lock_guard lock(mutex_);
  listening_.reset();
}

void Watcher::stop() {
  stop_listening();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
}

void Watcher::drain(OwnedFd socket) {
  {
    const std::lock_guard lock(mutex_);
    to_drain_.push_back(std::move(socket));
  }
  wake();
}

void Watcher::run() {
  std::array<epoll_event, 64> events{};
  auto next_look = Clock::now() + kClockPeriod;
  for (;;) {
    const bool has_clocks = connections_.size() > 0 || !drained_.empty() || !listens_;
    const auto left = std::chrono::duration_cast<milliseconds>(next_look - Clock::now()).count();
    const int timeout = has_clocks ? static_cast<int>(std::max<int64_t>(left + 1, 0)) : -1;
    const int count =
        epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout);
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    for (int i = 0; i < count; ++i) handle(events[static_cast<size_t>(i)].data.u64);
    if (Clock::now() < next_look) continue;
    next_look = Clock::now() + kClockPeriod;
    check_clocks();
  }
}

void Watcher::handle(uint64_t token) {
  if (token == kWakeup) {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(wakeup_.get(), &count, sizeof count);
    take_over();
  } else if (token == kListening) {
    accept_some();
  } else if (token <= kLastDrained) {
    read_drained(token);
  } else if (const auto connection = connections_.by_id(token)) {
    connection->client_left();
  }
}

void Watcher::accept_some() {
  const std::lock_guard lock(mutex_);
  for (int i = 0; i < kAcceptedAtOnce && listening_.get() >= 0; ++i) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    OwnedFd socket(accept4(listening_.get(), reinterpret_cast<sockaddr*>(&address), &size,
                           SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.get() < 0) {
      if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
      // There is no room for it now: to be told of it without end would not make any.
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listening_.get(), nullptr);
      listens_ = false;
      return;
    }
    set_options(socket.get());
    const int fd = socket.get();
    const auto connection = connections_.add(core_, fd, address_text(address));
    if (!connection) {
      turn_away(std::move(socket));
      continue;
    }
    // On the edge: of an end that nobody acts on there is one event, not a stream of them.
    watch(fd, EPOLLRDHUP | EPOLLET, connection->id);
    serve_(socket.release(), address, size);
  }
}

void Watcher::turn_away(OwnedFd socket) {
  ++core_->refused;
  if (core_->is_tls || drained_.size() >= kMostDrained) return;
  const Refusal refusal{503, "as many connections are open as the server allows", true};
  const std::string text = raw_answer(core_->answer_to(refusal), new_request_id());
  if (send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) <= 0) return;
  to_drain_.push_back(std::move(socket));
  wake();
}

void Watcher::take_over() {
  std::vector<OwnedFd> sockets;
  {
    const std::lock_guard lock(mutex_);
    sockets.swap(to_drain_);
  }
  for (OwnedFd& socket : sockets) {
    if (drained_.size() >= kMostDrained) continue;
    shutdown(socket.get(), SHUT_WR);
    drain_serial_ =
        drain_serial_ < kLastDrained ? std::max(drain_serial_ + 1, kFirstDrained) : kFirstDrained;
    if (!watch(socket.get(), EPOLLIN | EPOLLRDHUP, drain_serial_)) continue;
    drained_[drain_serial_] = {std::move(socket), Clock::now() + kDrainTime, kDrainRoom};
  }
}

void Watcher::read_drained(uint64_t token) {
  const auto found = drained_.find(token);
  if (found == drained_.end()) return;
  std::array<char, 16 << 10> scratch;
  Drained& drained = found->second;
  const ssize_t got = recv(drained.socket.get(), scratch.data(), scratch.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0 || static_cast<size_t>(got) >= drained.room) {
    drained_.erase(found);
  } else {
    drained.room -= static_cast<size_t>(got);
  }
}

void Watcher::check_clocks() {
  const auto now = Clock::now();
  for (const auto& connection : connections_.all()) connection->check_clock(now);
  end_slow_readers();
  std::erase_if(drained_, [now](const auto& each) { return now > each.second.until; });
  if (listens_) return;
  const std::lock_guard lock(mutex_);
  listens_ = listening_.get() < 0 || watch(listening_.get(), EPOLLIN, kListening);
}

// Whoever has just been answered is never refused for the sake of those that do not read: when they
// hold too much together, those that have had longest to take it end.
void Watcher::end_slow_readers() {
  const uint64_t most = core_->options.limits.unsent_bytes;
  const uint64_t found = core_->unsent.bytes();
  if (found <= most) return;
  struct Reader {
    bool stays = true;
    Transaction::Waiting waiting;
    std::shared_ptr<Connection> connection;
  };
  std::vector<Reader> readers;
  std::map<const std::string*, int> with_body;
  for (const auto& connection : connections_.all()) {
    const std::lock_guard lock(connection->mutex);
    if (connection->transaction == nullptr) continue;
    readers.push_back({!connection->broken, connection->transaction->waiting_locked(), connection});
    ++with_body[readers.back().waiting.body];
  }
  // First those that have been ended already, whose bytes libmicrohttpd has not let go yet.
  std::ranges::sort(readers, {},
                    [](const Reader& each) { return std::pair(each.stays, each.waiting.since); });
  uint64_t freed = 0;
  for (const Reader& reader : readers) {
    if (found - std::min(freed, found) <= most) return;
    const auto& [body, of_body, of_stream, since] = reader.waiting;
    if (of_body + of_stream <= kSmallAnswer) continue;
    if (reader.stays) {
      const std::lock_guard lock(reader.connection->mutex);
      const auto& transaction = reader.connection->transaction;
      if (transaction == nullptr || transaction->waiting_locked() != reader.waiting) continue;
      reader.connection->break_off_locked();
    }
    freed += of_stream + (--with_body[body] == 0 ? of_body : 0);
  }
}

}  // namespace octet::server::http
