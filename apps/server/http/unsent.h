// Bytes of answers and streams that clients have not taken yet. A body that several answers share,
// like a picture that many fetch, counts once.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

namespace octet::server::http {

class Unsent {
 public:
  uint64_t bytes() const { return bytes_; }
  void hold(uint64_t bytes) { bytes_ += bytes; }
  void release(uint64_t bytes) { bytes_ -= bytes; }
  // Whoever holds a body keeps it alive until it is released.
  void hold(const std::string& body);
  void release(const std::string& body);

 private:
  std::atomic<uint64_t> bytes_{0};
  std::mutex mutex_;
  std::unordered_map<const std::string*, int> bodies_;  // how many answers have it
};

}  // namespace octet::server::http
