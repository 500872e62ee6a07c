// A SIGBUS inside a file mapping becomes a flag instead of the end of the process.
//
// Linux sends SIGBUS to whoever touches a mapped page that now lies beyond the file's end, or that
// the disk cannot read. Guarded ranges are registered in a lock-free table. The handler replaces
// the range with zeros from the faulting page on, marks it and returns, so that the reader goes on;
// whoever uses the bytes calls faulted() first.
//
// Rejected: fstat() before each read (the file can shrink between the two), pread() into buffers
// (copies every weight once more, and a checkpoint no longer shares the page cache), siglongjmp out
// of the handler (skips destructors, and the fault may be in a thread of the pool).
//
// A signal handler belongs to the whole process, so a library has to be careful. It is installed
// once, with the first guard, and stays. A SIGBUS outside guarded ranges goes to the previous
// handler or has its default effect. A handler that the program installs later should pass on what
// it does not know; otherwise a file that shrinks ends the process, as in any other program.
#pragma once

#include <cstddef>

namespace octet {

class FaultGuard {
 public:
  FaultGuard() = default;  // guards nothing
  // `begin` is the start of a page, as mmap() returns it.
  FaultGuard(const std::byte* begin, size_t bytes);
  ~FaultGuard();  // before the range is unmapped

  FaultGuard(FaultGuard&& other) noexcept;
  FaultGuard& operator=(FaultGuard&& other) noexcept;
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;

  // Whether zeros may have been read instead of the file's bytes.
  bool faulted() const;

  struct Range;

 private:
  Range* range_ = nullptr;
};

}  // namespace octet
