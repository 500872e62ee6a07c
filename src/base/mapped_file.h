// A whole file mapped read-only. Pages are read on first touch, so a checkpoint far larger than
// memory can be opened; the size is 64-bit throughout.
//
// A file that becomes shorter while it is mapped reads as zeros from there on (base/fault_guard.h).
// So whoever has read bytes calls check_intact() before using anything made from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"
#include "base/fault_guard.h"

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

  // The file's state when it was opened; times in nanoseconds since 1970.
  struct Stamp {
    uint64_t inode = 0;
    int64_t modified_ns = 0, changed_ns = 0;
    uint64_t samples = 0;  // a hash of some of its bytes
  };

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const Stamp& stamp() const { return stamp_; }
  const std::string& path() const { return path_; }

  // Throws Error if the file is shorter than it was, a part of it could not be read, or it was
  // written to: bytes read so far may be zeros that were never in it, or a mixture.
  void check_intact() const;

  // The result of `reader` on bytes() that stayed intact until it was done. If they did not, the
  // Error says so, whatever the reader made of the zeros.
  template <class Reader>
  auto read(const Reader& reader) const {
    try {
      auto made = reader(bytes());
      check_intact();
      return made;
    } catch (const Error&) {
      check_intact();
      throw;
    }
  }

  // Copies `part`, which is a part of bytes(), by reading the file: its pages are in the system's
  // cache or get there, and need not be mapped and released again, which for gigabytes costs more
  // than the copy. What cannot be read is taken from the mapping, so that check_intact() reports
  // it. Several threads may call it.
  void copy(std::span<const std::byte> part, std::byte* into) const;

  // Asks the system to read `part`, which is a part of bytes(), into its cache; waits for nothing.
  void read_ahead(std::span<const std::byte> part) const;

  // Gives the whole pages inside `part`, which is a part of bytes(), back to the system, so that
  // reading a file once does not make all of it resident. The bytes stay valid: a page that is
  // touched again is read again.
  void release(std::span<const std::byte> part) const;

 private:
  void close();
  // Where `part` begins. Throws Error if it is not inside, saying what was `to be` done with it.
  size_t offset_of(std::span<const std::byte> part, const char* to_be) const;

  std::string path_;
  int fd_ = -1;  // stays open: a path may lead to another file by now
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  Stamp stamp_;
  FaultGuard guard_;
};

}  // namespace octet
