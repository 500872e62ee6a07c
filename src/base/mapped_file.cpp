#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/error.h"

namespace octet {
namespace {

int64_t nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  // O_NONBLOCK: opening a FIFO must answer "not a regular file" instead of waiting for a writer.
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) fail("{}: cannot be opened: {}", path, system_error_text(errno));
  try {
    struct stat status = {};
    if (::fstat(fd_, &status) != 0) {
      fail("{}: its size cannot be read: {}", path, system_error_text(errno));
    }
    check(S_ISREG(status.st_mode), "{}: is not a regular file", path);
    size_ = static_cast<size_t>(status.st_size);
    stamp_ = {status.st_ino, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
    if (size_ == 0) return;
    void* mapping = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd_, 0);
    if (mapping == MAP_FAILED) {
      fail("{}: {} bytes cannot be mapped: {}", path, size_, system_error_text(errno));
    }
    data_ = static_cast<const std::byte*>(mapping);
    guard_ = FaultGuard(data_, size_);
  } catch (...) {
    close();
    throw;
  }
}

MappedFile::~MappedFile() { close(); }

void MappedFile::close() {
  guard_ = FaultGuard();
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  if (fd_ >= 0) ::close(fd_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      stamp_(other.stamp_),
      guard_(std::move(other.guard_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(stamp_, other.stamp_);
  std::swap(guard_, other.guard_);
  return *this;
}

void MappedFile::check_intact() const {
  // The size is asked for as well: within its last page a file shrinks without a fault.
  struct stat status = {};
  if (::fstat(fd_, &status) != 0) {
    fail("{}: its size cannot be read: {}", path_, system_error_text(errno));
  }
  const auto size = static_cast<size_t>(status.st_size);
  check(size >= size_,
        "{}: became shorter while it was being read ({} bytes when it was opened, {} now); wait "
        "until nothing writes to it, then start again",
        path_, size_, size);
  check(!guard_.faulted(),
        "{}: a part of it could not be read (it has {} bytes): its disk failed, or something wrote "
        "to it meanwhile; start again when nothing does",
        path_, size);
  // A copy over it makes it empty first: pages touched behind that hold other bytes, without a
  // fault. The time of its status is of no use here, as chmod and links set it, too.
  check(nanoseconds(status.st_mtim) == stamp_.modified_ns,
        "{}: something wrote to it while it was being read (its time of modification is another "
        "than when it was opened); wait until nothing writes to it, then start again",
        path_);
}

void MappedFile::release(std::span<const std::byte> part) const {
  if (part.empty()) return;
  const auto begin = reinterpret_cast<uintptr_t>(part.data());
  const auto mapped = reinterpret_cast<uintptr_t>(data_);
  check(begin >= mapped && begin - mapped <= size_ && part.size() <= size_ - (begin - mapped),
        "{}: {} bytes to release are not a part of the mapped file", path_, part.size());
  // Neighbours share the first and the last page, so those stay.
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t last = (begin + part.size()) / page * page;
  if (first >= last) return;
  if (::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED) != 0) {
    fail("{}: {} bytes cannot be released: {}", path_, last - first, system_error_text(errno));
  }
}

}  // namespace octet
