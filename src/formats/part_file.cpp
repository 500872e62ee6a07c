#include "formats/part_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/error.h"

namespace octet {

Descriptor::~Descriptor() {
  if (fd >= 0) ::close(fd);
}

int open_locked(const std::string& path, IfAbsent if_absent) {
  const int flags =
      O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | (if_absent == IfAbsent::create ? O_CREAT : 0);
  for (;;) {
    Descriptor file{::open(path.c_str(), flags, 0666)};
    if (file.fd < 0 && errno == ENOENT && if_absent == IfAbsent::nothing) return -1;
    if (file.fd < 0 && errno == EISDIR) {
      fail("{}: is a folder, expected a file or nothing; move it away", path);
    }
    if (file.fd < 0) fail("{}: cannot be created: {}", path, system_error_text(errno));
    struct stat opened = {};
    if (::fstat(file.fd, &opened) != 0) {
      fail("{}: cannot be examined: {}", path, system_error_text(errno));
    }
    check(S_ISREG(opened.st_mode), "{}: is not a regular file; move it away", path);
    check(opened.st_nlink <= 1, "{}: the file has another name, too; move it away", path);
    // Where a file system has no locks at all, the work goes on without one.
    if (::flock(file.fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      fail("{}: another process is writing it; wait until that has ended, or end it", path);
    }
    // Between open and lock, the process that held the lock may have moved the file to its target.
    struct stat named = {};
    if (::lstat(path.c_str(), &named) == 0 && named.st_dev == opened.st_dev &&
        named.st_ino == opened.st_ino) {
      return std::exchange(file.fd, -1);
    }
  }
}

bool read_at(int fd, uint64_t offset, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errno = EIO;  // the file has become shorter
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return true;
}

bool write_at(int fd, uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {  // Linux writes at most 2 GiB per call
    const ssize_t done = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(done));
    offset += static_cast<uint64_t>(done);
  }
  return true;
}

void reserve_room(int fd, const std::string& path, uint64_t size) {
  int result = 0;
  do {
    result = ::fallocate(fd, 0, 0, static_cast<off_t>(size));
  } while (result != 0 && errno == EINTR);
  if (result == 0) return;
  const int reason = errno;
  struct statvfs disk = {};
  const bool known = ::fstatvfs(fd, &disk) == 0;
  const uint64_t room = known ? uint64_t{disk.f_bavail} * disk.f_frsize : 0;
  if (reason == ENOSPC || (known && room < size)) {
    fail("{}: the disk has room for {} bytes, but the file needs {}; free some or write elsewhere",
         path, room, size);
  }
  const bool unsupported = reason == EOPNOTSUPP || reason == ENOSYS;
  if (!unsupported || ::ftruncate(fd, static_cast<off_t>(size)) != 0) {
    fail("{}: cannot get its size of {} bytes: {}", path, size,
         system_error_text(unsupported ? errno : reason));
  }
}

}  // namespace octet
