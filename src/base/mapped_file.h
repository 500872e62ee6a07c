// A whole file mapped read-only. Pages are read on first touch, so a checkpoint far larger than
// memory can be opened; the size is 64-bit throughout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace octet {

class MappedFile {
 public:
  // Throws Error naming the path when it cannot be opened, is not a regular file or cannot be
  // mapped. An empty file maps to an empty span.
  explicit MappedFile(const std::string& path);
  ~MappedFile();

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // What the system said of the file when it was opened; times in nanoseconds since 1970.
  struct Stamp {
    uint64_t inode = 0;
    int64_t modified_ns = 0, changed_ns = 0;
  };

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const Stamp& stamp() const { return stamp_; }
  const std::string& path() const { return path_; }

  // Gives the whole pages inside `part`, which is a part of bytes(), back to the system, so that
  // reading a file once does not make all of it resident. The bytes stay valid: a page that is
  // touched again is read again.
  void release(std::span<const std::byte> part) const;

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  Stamp stamp_;
};

}  // namespace octet
