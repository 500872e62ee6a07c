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

// Closes the descriptor on every way out; the mapping itself survives the close.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

int64_t nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  // O_NONBLOCK: opening a FIFO must answer "not a regular file" instead of waiting for a writer.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) fail("{}: cannot be opened: {}", path, system_error_text(errno));
  struct stat status = {};
  if (::fstat(file.fd, &status) != 0) {
    fail("{}: its size cannot be read: {}", path, system_error_text(errno));
  }
  check(S_ISREG(status.st_mode), "{}: is not a regular file", path);
  size_ = static_cast<size_t>(status.st_size);
  stamp_ = {status.st_ino, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
  if (size_ == 0) return;
  void* mapping = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (mapping == MAP_FAILED) {
    fail("{}: {} bytes cannot be mapped: {}", path, size_, system_error_text(errno));
  }
  data_ = static_cast<const std::byte*>(mapping);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      stamp_(other.stamp_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(stamp_, other.stamp_);
  return *this;
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
