#include "base/work_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInfix = ".octet-";
constexpr std::string_view kRandom = "XXXXXX";  // mkdtemp() puts letters and digits there

int open_folder(const fs::path& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

bool is_still(const fs::path& path, int fd) {
  struct stat named = {}, opened = {};
  return ::lstat(path.c_str(), &named) == 0 && ::fstat(fd, &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

}  // namespace

WorkFolder::WorkFolder(const fs::path& target) {
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string name = target.string() + kInfix + std::string(kRandom);
    check(::mkdtemp(name.data()) != nullptr, "{}: a folder beside it cannot be made: {}",
          target.string(), system_error_text(errno));
    path_ = name;
    fd_ = open_folder(path_);
    if (fd_ < 0 && errno != ENOENT) return;  // goes without a lock
    // Before the lock is taken another program may have seen the folder and found it abandoned. It
    // removes it under the lock, for which this waits.
    if (fd_ < 0) continue;
    while (::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
    if (is_still(path_, fd_)) return;
    ::close(std::exchange(fd_, -1));
  }
  fail("{}: folders beside it are removed as soon as they are made", target.string());
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  if (fd_ >= 0) ::close(fd_);
}

void WorkFolder::remove_abandoned(const fs::path& target) {
  const std::string begin = target.filename().string() + kInfix;
  const size_t length = begin.size() + kRandom.size();
  std::error_code error;
  for (fs::directory_iterator it(target.parent_path(), error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.size() != length || !name.starts_with(begin)) continue;
    const int fd = open_folder(it->path());
    if (fd < 0) continue;
    std::error_code ignored;
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) fs::remove_all(it->path(), ignored);
    ::close(fd);
  }
}

}  // namespace octet
