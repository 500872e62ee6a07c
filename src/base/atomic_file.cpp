#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace octet {

namespace fs = std::filesystem;

std::string folder_of(const std::string& path) {
  const auto folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

std::string follow_links(const std::string& path) {
  // realpath() and the like do not follow a link to a file that does not exist yet. The kernel has
  // followed the chain before, so it is not a loop; the bound is for one that changes meanwhile.
  fs::path target = path;
  for (int links = 0; links < 40; ++links) {
    std::error_code error;
    const fs::path next = fs::read_symlink(target, error);
    if (error) break;  // not a link
    target = target.parent_path() / next;
  }
  return target.string();
}

void sync_folder_of(const std::string& path) {
  const int fd = ::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;  // the rename is done, but may not survive a power cut
  ::fsync(fd);
  ::close(fd);
}

namespace {

// Calls make(name) with names for a temporary file next to `target` until one is free. The names
// are short, whatever the target's length: a file name has at most 255 bytes.
template <class Make>
int with_free_name(const std::string& target, std::string& name, Make make) {
  for (int attempt = 0;; ++attempt) {
    name = fmt::format("{}/.octet.{}.{}.tmp", folder_of(target), ::getpid(), attempt);
    const int result = make(name.c_str());
    if (result >= 0) return result;
    if (errno != EEXIST || attempt == 1000) {
      const int error_number = errno;
      name.clear();
      errno = error_number;
      return result;
    }
  }
}

// The only way to name an unnamed file without privileges.
std::string link_to(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

}  // namespace

AtomicFile::AtomicFile(std::string path, AtLink at_link) : path_(std::move(path)) {
  check(!path_.empty(), "the path of a file to write is empty, expected a file name");
  check(path_.find('\0') == path_.npos,
        "the path of a file to write has a NUL byte in it, after {}", path_.c_str());
  struct stat status = {};
  const bool follows = at_link == AtLink::follow;
  bool exists = (follows ? ::stat : ::lstat)(path_.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) {
    fail("{}: cannot be created: {}", path_, system_error_text(errno));
  }
  exists = exists && !S_ISLNK(status.st_mode);
  check(path_.back() != '/' && !(exists && S_ISDIR(status.st_mode)),
        "{}: is a folder, expected a file", path_);
  // No links: a file deleted while open, such as the /dev/stdout of a test that captures it.
  if (exists && (!S_ISREG(status.st_mode) || status.st_nlink == 0)) {
    open_direct();
    return;
  }
  target_ = follows ? follow_links(path_) : path_;
  open_temporary(exists ? status.st_mode & 0777 : 0666);
  if (fd_ < 0) fail("{}: cannot be created: {}", path_, system_error_text(errno));
  // The umask is for new files; a file that is replaced keeps exactly the permissions it had.
  if (exists && ::fchmod(fd_, status.st_mode & 0777) != 0) {
    const int error_number = errno;
    ::close(fd_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    fail("{}: cannot keep its permissions: {}", path_, system_error_text(error_number));
  }
}

// O_NONBLOCK, because opening a FIFO without a reader would otherwise block forever.
void AtomicFile::open_direct() {
  fd_ = ::open(path_.c_str(), O_WRONLY | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd_ < 0 && errno == ENXIO) {
    fail(
        "{}: is a pipe without a reader or a socket, expected a pipe that is read; start its "
        "reader first",
        path_);
  }
  if (fd_ < 0) fail("{}: cannot be opened: {}", path_, system_error_text(errno));
  const int flags = ::fcntl(fd_, F_GETFL);
  if (flags < 0 || ::fcntl(fd_, F_SETFL, flags & ~O_NONBLOCK) != 0) {
    const int error_number = errno;
    ::close(fd_);
    fail("{}: cannot be opened: {}", path_, system_error_text(error_number));
  }
}

// Leaves fd_ negative and errno set if it fails. open() rather than mkstemp(), so that the file
// gets the permissions of the user's umask.
void AtomicFile::open_temporary(unsigned mode) {
  fd_ = ::open(folder_of(target_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
  if (fd_ >= 0) {
    if (::access(link_to(fd_).c_str(), F_OK) == 0) return;
    ::close(fd_);  // without /proc the file could never get its name
  }
  // Whatever the error: kernels and file systems that lack O_TMPFILE say so in many ways, and an
  // error of the user's (no such folder, no permission) occurs here again.
  fd_ = with_free_name(target_, temporary_, [mode](const char* name) {
    return ::open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  });
  if (fd_ >= 0) remembered_.remember(temporary_);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {  // Linux writes at most 2 GiB per call, and less into a pipe
    const ssize_t done = ::write(fd_, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      fail("{}: writing failed after {} bytes: {}", path_, written_, system_error_text(errno));
    }
    bytes = bytes.subspan(static_cast<size_t>(done));
    written_ += static_cast<uint64_t>(done);
  }
}

// Network file systems report a failed write here at the latest; the descriptor is closed anyway.
void AtomicFile::close_checked() {
  if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) {
    fail("{}: cannot be completed: {}", path_, system_error_text(errno));
  }
}

void AtomicFile::commit() {
  if (target_.empty()) {
    close_checked();
    return;
  }
  const auto require = [this](bool done) {
    if (!done) fail("{}: cannot be completed: {}", path_, system_error_text(errno));
  };
  require(::fsync(fd_) == 0);
  bool has_its_name = false;
  if (temporary_.empty()) {
    const std::string source = link_to(fd_);
    const auto link = [&source](const char* name) {
      return ::linkat(AT_FDCWD, source.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW);
    };
    has_its_name = link(target_.c_str()) == 0;
    if (!has_its_name) {
      // linkat() does not replace a file, so this takes two steps, with nothing between them that
      // takes time.
      require(with_free_name(target_, temporary_, link) == 0);
      remembered_.remember(temporary_);
    }
  }
  close_checked();
  if (!has_its_name) {
    require(::rename(temporary_.c_str(), target_.c_str()) == 0);
    remembered_.forget();
    temporary_.clear();
  }
  sync_folder_of(target_);
}

}  // namespace octet
