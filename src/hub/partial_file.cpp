#include "hub/partial_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <numeric>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"

namespace octet::hub {
namespace {

constexpr uint64_t kKind = 0x31676e7274636f6full;  // a journal of this layout and byte order
constexpr size_t kHeadNumbers = 3;

std::string bytes_path(const std::string& target) { return target + ".octet.incomplete"; }
std::string journal_path(const std::string& target) { return target + ".octet.ranges"; }

uint64_t count_of(uint64_t size, uint64_t range_bytes) {
  return size / range_bytes + (size % range_bytes != 0 ? 1 : 0);
}

[[noreturn]] void fail_to_write(const std::string& path, int error_number) {
  const bool is_full = error_number == ENOSPC || error_number == EDQUOT;
  fail("{}: writing failed: {}{}", path, system_error_text(error_number),
       is_full ? "; free some space and pull again, what was fetched is kept" : "");
}

void write_at(int fd, std::span<const std::byte> bytes, uint64_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_to_write(path, errno);
    bytes = bytes.subspan(static_cast<size_t>(done));
    offset += static_cast<uint64_t>(done);
  }
}

}  // namespace

PartialFile::PartialFile(std::string target, uint64_t size, uint64_t range_bytes)
    : target_(std::move(target)),
      path_(bytes_path(target_)),
      journal_path_(journal_path(target_)),
      size_(size),
      range_bytes_(range_bytes) {
  try {
    if (!take_up()) begin(range_bytes);
  } catch (...) {
    close();
    throw;
  }
}

PartialFile::~PartialFile() { close(); }

void PartialFile::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  if (journal_ >= 0) ::close(std::exchange(journal_, -1));
}

// Everything must fit, or work starts again: an old or torn journal costs time, never bytes that
// are wrong.
bool PartialFile::take_up() {
  fd_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  journal_ = ::open(journal_path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  struct stat bytes = {}, journal = {};
  uint64_t head[kHeadNumbers] = {};
  if (fd_ < 0 || journal_ < 0 || ::fstat(fd_, &bytes) != 0 || ::fstat(journal_, &journal) != 0 ||
      static_cast<uint64_t>(bytes.st_size) != size_ ||
      ::pread(journal_, head, sizeof(head), 0) != sizeof(head) || head[0] != kKind ||
      head[1] != size_ || head[2] == 0) {
    return false;
  }
  const uint64_t count = count_of(size_, head[2]);
  const auto numbers = static_cast<uint64_t>(journal.st_size) / sizeof(uint64_t);
  if (numbers != kHeadNumbers + count || journal.st_size % sizeof(uint64_t) != 0) return false;
  range_bytes_ = head[2];
  done_.resize(count);
  const size_t length = count * sizeof(uint64_t);
  if (::pread(journal_, done_.data(), length, sizeof(head)) != static_cast<ssize_t>(length)) {
    return false;
  }
  for (size_t i = 0; i < done_.size(); ++i) {
    const Range piece = range(i);
    if (piece.done > piece.end - piece.begin) return false;
  }
  return true;
}

// Without a journal there is nothing to take up, so it goes first and comes last, as a whole.
void PartialFile::begin(uint64_t range_bytes) {
  close();
  if (::unlink(journal_path_.c_str()) != 0 && errno != ENOENT) {
    fail_to_write(journal_path_, errno);
  }
  if (::unlink(path_.c_str()) != 0 && errno != ENOENT) fail_to_write(path_, errno);
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd_ < 0) fail_to_write(path_, errno);
  const auto length = static_cast<off_t>(size_);
  // Space is taken now where the file system can do that, so that a full disk shows at the start.
  if (size_ > 0 && ::fallocate(fd_, 0, 0, length) != 0) {
    if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR) {
      const int error_number = errno;
      ::unlink(path_.c_str());
      fail_to_write(path_, error_number);
    }
  }
  if (::ftruncate(fd_, length) != 0) fail_to_write(path_, errno);
  range_bytes_ = std::max<uint64_t>(range_bytes, 1);
  done_.assign(count_of(size_, range_bytes_), 0);
  std::vector<uint64_t> numbers = {kKind, size_, range_bytes_};
  numbers.resize(kHeadNumbers + done_.size());
  AtomicFile journal(journal_path_, AtLink::replace);
  journal.write(std::as_bytes(std::span(numbers)));
  journal.commit();
  journal_ = ::open(journal_path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (journal_ < 0) fail_to_write(journal_path_, errno);
}

PartialFile::Range PartialFile::range(size_t index) const {
  const uint64_t begin = index * range_bytes_;
  return {begin, begin + std::min(range_bytes_, size_ - begin), done_[index]};
}

uint64_t PartialFile::bytes_done() const {
  return std::accumulate(done_.begin(), done_.end(), uint64_t{0});
}

void PartialFile::append(size_t index, std::span<const std::byte> bytes) {
  const Range piece = range(index);
  check(bytes.size() <= piece.end - piece.begin - piece.done, "{}: bytes beyond their range",
        path_);
  write_at(fd_, bytes, piece.begin + piece.done, path_);
  set_done(index, done_[index] + bytes.size());
}

void PartialFile::set_done(size_t index, uint64_t done) {
  done_[index] = done;
  write_at(journal_, std::as_bytes(std::span(&done_[index], 1)),
           (kHeadNumbers + index) * sizeof(uint64_t), journal_path_);
}

void PartialFile::restart_as_one() { begin(size_); }

void PartialFile::forget(size_t index, uint64_t keep) {
  set_done(index, std::min(done_[index], keep));
}

void PartialFile::finish() {
  check(::fsync(fd_) == 0, "{}: cannot be completed: {}", path_, system_error_text(errno));
  check(::rename(path_.c_str(), target_.c_str()) == 0, "{}: cannot be completed: {}", target_,
        system_error_text(errno));
  ::unlink(journal_path_.c_str());
  close();
}

void PartialFile::remove() {
  remove_leftovers(target_);
  close();
}

uint64_t PartialFile::bytes_on_disk(const std::string& target) {
  struct stat status = {};
  if (::stat(bytes_path(target).c_str(), &status) != 0) return 0;
  return static_cast<uint64_t>(status.st_blocks) * 512;
}

void PartialFile::remove_leftovers(const std::string& target) {
  ::unlink(journal_path(target).c_str());
  ::unlink(bytes_path(target).c_str());
}

}  // namespace octet::hub
