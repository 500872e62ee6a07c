// A lock between processes: flock() on a file that is created for it and stays. The kernel releases
// it when a process ends, however that happens.
#pragma once

#include <chrono>
#include <string>

namespace octet {

class FileLock {
 public:
  // Waits until the lock is free or `patience` is over. Throws Error if the file cannot be created
  // or its file system has no locks.
  FileLock(const std::string& path, std::chrono::milliseconds patience);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  bool is_held() const { return fd_ >= 0; }  // false when the patience ran out

 private:
  int fd_ = -1;
};

}  // namespace octet
