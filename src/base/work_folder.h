// A folder for work that is not finished, beside the folder that it will become.
//
// It is removed with its object. When the program is killed it stays, so the next one looks for
// such folders: as long as it lives, the program that made one holds a lock on it, which the kernel
// gives back when it dies. (Where a file system has no locks on folders, abandoned ones stay.)
#pragma once

#include <filesystem>

namespace octet {

class WorkFolder {
 public:
  // "<target>.octet-XXXXXX". Throws Error when it cannot be made.
  explicit WorkFolder(const std::filesystem::path& target);
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Removes those of `target` whose programs are gone. What cannot be removed stays.
  static void remove_abandoned(const std::filesystem::path& target);

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

}  // namespace octet
