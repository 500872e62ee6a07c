#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"

namespace octet {
namespace {

int64_t nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Headers are at the beginning of a file, and GGUF's last tensors at its end.
constexpr size_t kEndBytes = 64 * 1024;
constexpr size_t kSamples = 16, kSampleBytes = 16 * 1024;

// Of all bytes if the file is no larger than the samples. Read instead of accessed through the
// mapping, which would make megabytes around each sample resident.
uint64_t hash_of_samples(int fd, size_t size) {
  uint64_t hash = size;
  std::vector<std::byte> piece(kEndBytes);
  const auto add = [&](size_t from, size_t bytes) {
    const ssize_t count = ::pread(fd, piece.data(), bytes, static_cast<off_t>(from));
    hash =
        hash_bytes(std::span(piece).first(static_cast<size_t>(std::max<ssize_t>(count, 0))), hash);
  };
  if (size <= 2 * kEndBytes + kSamples * kSampleBytes) {
    for (size_t at = 0; at < size; at += kEndBytes) add(at, std::min(kEndBytes, size - at));
    return hash;
  }
  add(0, kEndBytes);
  const size_t step = (size - 2 * kEndBytes - kSampleBytes) / (kSamples - 1);
  for (size_t i = 0; i < kSamples; ++i) add(kEndBytes + step * i, kSampleBytes);
  add(size - kEndBytes, kEndBytes);
  return hash;
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  check(path.find('\0') == path.npos, "the path of a file to read has a NUL byte in it, after {}",
        path.c_str());
  // O_NONBLOCK: opening a FIFO must answer "not a regular file" instead of waiting for a writer.
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) fail_by_system(errno, sentence("{}: cannot be opened", path));
  try {
    struct stat status = {};
    if (::fstat(fd_, &status) != 0) {
      fail("{}: its size cannot be read: {}", path, system_error_text(errno));
    }
    check(S_ISREG(status.st_mode), "{}: is not a regular file", path);
    size_ = static_cast<size_t>(status.st_size);
    stamp_ = {status.st_ino, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim),
              hash_of_samples(fd_, size_)};
    if (size_ == 0) return;
    void* mapping = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd_, 0);
    if (mapping == MAP_FAILED) {
      fail_by_system(errno, sentence("{}: {} bytes cannot be mapped", path, size_));
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
  // The size is checked as well: within its last page a file shrinks without a fault.
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
  // A copy over it empties it first: pages touched later contain other bytes, without a fault.
  // cp -p restores the modification time but not that of the status, which by itself says little:
  // chmod, links and renaming change it, too.
  const bool is_changed = nanoseconds(status.st_mtim) != stamp_.modified_ns ||
                          (nanoseconds(status.st_ctim) != stamp_.changed_ns &&
                           hash_of_samples(fd_, size_) != stamp_.samples);
  check(!is_changed,
        "{}: something wrote to it while it was being read; wait until nothing writes to it, then "
        "start again",
        path_);
}

size_t MappedFile::offset_of(std::span<const std::byte> part, const char* to_be) const {
  const auto begin = reinterpret_cast<uintptr_t>(part.data());
  const auto mapped = reinterpret_cast<uintptr_t>(data_);
  check(begin >= mapped && begin - mapped <= size_ && part.size() <= size_ - (begin - mapped),
        "{}: {} bytes to {} are not a part of the mapped file", path_, part.size(), to_be);
  return begin - mapped;
}

void MappedFile::copy(std::span<const std::byte> part, std::byte* into) const {
  if (part.empty()) return;
  const size_t offset = offset_of(part, "copy");
  size_t done = 0;
  while (done < part.size()) {
    const ssize_t count =
        ::pread(fd_, into + done, part.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<size_t>(count);
  }
  if (done < part.size()) std::memcpy(into + done, part.data() + done, part.size() - done);
}

void MappedFile::read_ahead(std::span<const std::byte> part) const {
  if (part.empty()) return;
  // Of one request Linux reads no more than a device's usual read-ahead and forgets the rest.
  constexpr size_t kRequest = 128 * 1024;
  const size_t offset = offset_of(part, "read ahead");
  for (size_t at = 0; at < part.size(); at += kRequest) {
    const size_t bytes = std::min(kRequest, part.size() - at);
    // A wish: its refusal changes nothing.
    ::posix_fadvise(fd_, static_cast<off_t>(offset + at), static_cast<off_t>(bytes),
                    POSIX_FADV_WILLNEED);
  }
}

void MappedFile::release(std::span<const std::byte> part) const {
  if (part.empty()) return;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(data_) + offset_of(part, "release");
  // The first and last page are shared with neighbours, so they stay.
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t last = (begin + part.size()) / page * page;
  if (first >= last) return;
  if (::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED) != 0) {
    fail("{}: {} bytes cannot be released: {}", path_, last - first, system_error_text(errno));
  }
}

}  // namespace octet
