#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "base/error.h"

namespace octet {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kBetweenAttempts = std::chrono::milliseconds(1);

}  // namespace

FileLock::FileLock(const std::string& path, std::chrono::milliseconds patience) {
  // For writing, which NFS requires for an exclusive lock. O_NONBLOCK: a FIFO of that name must not
  // block the program. O_NOFOLLOW: a link must not make a file elsewhere.
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
  fd_ = ::open(path.c_str(), kFlags, 0666);
  if (fd_ < 0) fail("{}: cannot be opened: {}", path, system_error_text(errno));
  // Repeated attempts instead of one blocking call: a process that is suspended while it holds the
  // lock would block all others.
  const auto deadline = Clock::now() + patience;
  while (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    const int error_number = errno;
    if (error_number == EWOULDBLOCK && Clock::now() < deadline) {
      std::this_thread::sleep_for(kBetweenAttempts);
      continue;
    }
    ::close(std::exchange(fd_, -1));
    if (error_number == EWOULDBLOCK) return;
    fail("{}: cannot be locked: {}", path, system_error_text(error_number));
  }
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace octet
