#include "base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"

namespace octet {
namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

void check_regular(const std::string& path, mode_t mode) {
  if (!S_ISREG(mode)) fail("{}: is {}, expected a regular file", path, kind_of(mode));
}

// Nothing is there: no file, and no link to one that is missing.
bool is_absent(const std::string& path, int error_number) {
  struct stat link = {};
  return (error_number == ENOENT || error_number == ENOTDIR) && ::lstat(path.c_str(), &link) != 0;
}

[[noreturn]] void fail_to_open(const std::string& path, int error_number) {
  if (error_number == ENOENT) fail("{}: is a link to a file that is missing", path);
  fail("{}: cannot be opened: {}", path, system_error_text(error_number));
}

}  // namespace

bool is_file_there(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0) {
    check_regular(path, status.st_mode);
    return true;
  }
  const int error_number = errno;
  if (is_absent(path, error_number)) return false;
  fail_to_open(path, error_number);
}

std::optional<std::string> read_start(const std::string& path, size_t limit) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    const int error_number = errno;
    if (is_absent(path, error_number)) return std::nullopt;
    fail_to_open(path, error_number);
  }
  const struct Closer {
    int fd;
    ~Closer() { ::close(fd); }
  } closer{fd};
  struct stat status = {};
  if (::fstat(fd, &status) != 0) {
    fail("{}: cannot be examined: {}", path, system_error_text(errno));
  }
  check_regular(path, status.st_mode);
  std::string text(std::min(limit, static_cast<size_t>(status.st_size)), '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(fd, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("{}: cannot be read: {}", path, system_error_text(errno));
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  text.resize(size);
  return text;
}

}  // namespace octet
