#include "server/http/connections.h"

namespace octet::server::http {

// The descriptor is a part of the id: one look into the table finds both.
constexpr int kFdBits = 32;

std::shared_ptr<Connection> Connections::add(const std::shared_ptr<Core>& core, int fd,
                                             const std::string& peer) {
  const Limits& limits = core->options.limits;
  const std::lock_guard lock(mutex_);
  remove_locked(fd);  // one that libmicrohttpd closed before it had begun with it
  if (by_fd_.size() >= static_cast<size_t>(limits.connections)) return nullptr;
  int& of_address = of_address_[peer];
  if (limits.connections_per_address > 0 && of_address >= limits.connections_per_address) {
    return nullptr;
  }
  ++of_address;
  const uint64_t id = (++serial_ << kFdBits) | static_cast<uint32_t>(fd);
  return by_fd_[fd] = std::make_shared<Connection>(core, fd, id, peer);
}

void Connections::remove(const Connection& connection) {
  const std::lock_guard lock(mutex_);
  const auto found = by_fd_.find(connection.fd);
  if (found != by_fd_.end() && found->second->id == connection.id) remove_locked(connection.fd);
}

void Connections::remove_locked(int fd) {
  const auto found = by_fd_.find(fd);
  if (found == by_fd_.end()) return;
  const auto of_address = of_address_.find(found->second->peer);
  if (--of_address->second == 0) of_address_.erase(of_address);
  by_fd_.erase(found);
}

std::shared_ptr<Connection> Connections::by_fd(int fd) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_fd_.find(fd);
  return found == by_fd_.end() ? nullptr : found->second;
}

std::shared_ptr<Connection> Connections::by_id(uint64_t id) const {
  auto connection = by_fd(static_cast<int>(id & 0xffffffff));
  return connection && connection->id == id ? connection : nullptr;
}

std::vector<std::shared_ptr<Connection>> Connections::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Connection>> list;
  list.reserve(by_fd_.size());
  for (const auto& [fd, connection] : by_fd_) list.push_back(connection);
  return list;
}

size_t Connections::size() const {
  const std::lock_guard lock(mutex_);
  return by_fd_.size();
}

}  // namespace octet::server::http
