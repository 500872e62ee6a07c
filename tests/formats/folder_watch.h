// The names that files get in a folder while this exists, those of a moment among them.
#pragma once

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace octet::test {

class FolderWatch {
 public:
  explicit FolderWatch(const std::string& folder) : fd_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    if (::inotify_add_watch(fd_, folder.c_str(), IN_CREATE | IN_MOVED_TO) < 0) {
      throw std::runtime_error("inotify does not watch " + folder);
    }
  }
  ~FolderWatch() { ::close(fd_); }
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

  // Since the last call, in their order.
  std::vector<std::string> names() {
    std::vector<std::string> names;
    alignas(inotify_event) char events[16384];
    for (ssize_t got = 0; (got = ::read(fd_, events, sizeof(events))) > 0;) {
      for (const char* at = events; at < events + got;) {
        const auto* event = reinterpret_cast<const inotify_event*>(at);
        names.emplace_back(event->name);
        at += sizeof(inotify_event) + event->len;
      }
    }
    return names;
  }

 private:
  int fd_;
};

// O_TMPFILE: whether a file there can be without a name until it is complete.
inline bool has_unnamed_files(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

}  // namespace octet::test
