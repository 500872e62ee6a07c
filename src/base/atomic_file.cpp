#include "base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/error.h"

namespace octet {
namespace {

// Opened with O_EXCL and a name of our own rather than mkstemp: the file then gets the permissions
// that the user's umask asks for.
int open_temporary(const std::string& path, std::string& temporary) {
  for (int attempt = 0;; ++attempt) {
    temporary = fmt::format("{}.{}.{}.tmp", path, ::getpid(), attempt);
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST || attempt == 1000) return fd;
  }
}

void sync_folder_of(const std::string& path) {
  auto folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;  // the rename is done; only its durability across a power cut is weaker
  ::fsync(fd);
  ::close(fd);
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  fd_ = open_temporary(path_, temporary_);
  if (fd_ < 0) fail("{}: cannot be created: {}", path_, system_error_text(errno));
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  // Linux writes at most 2 GiB per call; smaller pieces also let a signal be noticed.
  constexpr size_t kPiece = size_t{64} << 20;
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd_, bytes.data(), std::min(bytes.size(), kPiece));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      fail("{}: writing failed after {} bytes: {}", path_, written_, system_error_text(errno));
    }
    bytes = bytes.subspan(static_cast<size_t>(done));
    written_ += static_cast<uint64_t>(done);
  }
}

void AtomicFile::commit() {
  if (::fsync(fd_) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail("{}: cannot be completed: {}", path_, system_error_text(errno));
  }
  ::close(fd_);
  fd_ = -1;
  sync_folder_of(path_);
}

}  // namespace octet
