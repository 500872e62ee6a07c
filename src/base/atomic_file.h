// A file that appears whole or not at all: bytes go to a temporary beside the target, which is
// flushed to disk and renamed over it by commit(). Without commit() the temporary is removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace octet {

class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  uint64_t bytes_written() const { return written_; }
  void commit();

 private:
  std::string path_;
  std::string temporary_;
  int fd_ = -1;
  uint64_t written_ = 0;
};

}  // namespace octet
