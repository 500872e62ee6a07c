#include "base/own_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace octet {

void check_own_folder(const std::filesystem::path& folder) {
  struct stat status = {};
  if (::stat(folder.c_str(), &status) != 0) return;
  check(status.st_uid == ::geteuid(),
        "the folder {} belongs to another user (number {}); set OCTET_CACHE_DIR to one of yours",
        folder.string(), status.st_uid);
  check((status.st_mode & S_IWOTH) == 0,
        "everybody may write to the folder {}; take that right away (chmod o-w), or set "
        "OCTET_CACHE_DIR to another",
        folder.string());
}

void make_own_folder(const std::filesystem::path& folder) {
  std::error_code error;
  if (folder.has_parent_path()) std::filesystem::create_directories(folder.parent_path(), error);
  check(!error, "the folder {} cannot be made: {}", folder.parent_path().string(), error.message());
  // Whatever the umask.
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
    fail("the folder {} cannot be made: {}", folder.string(), system_error_text(errno));
  }
  check_own_folder(folder);
}

}  // namespace octet
