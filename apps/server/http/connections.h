// All connections of a server, and how many there are of each address.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/http/connection.h"

namespace octet::server::http {

class Connections {
 public:
  // Null if that would be more than the limits allow.
  std::shared_ptr<Connection> add(const std::shared_ptr<Core>& core, int fd,
                                  const std::string& peer);
  void remove(const Connection& connection);
  std::shared_ptr<Connection> by_fd(int fd) const;
  std::shared_ptr<Connection> by_id(uint64_t id) const;
  std::vector<std::shared_ptr<Connection>> all() const;
  size_t size() const;

 private:
  void remove_locked(int fd);

  mutable std::mutex mutex_;
  uint64_t serial_ = 0;
  std::unordered_map<int, std::shared_ptr<Connection>> by_fd_;
  std::unordered_map<std::string, int> of_address_;
};

}  // namespace octet::server::http
