#include "base/own_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/env.h"
#include "base/error.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

void check_rights(const fs::path& folder, const struct stat& status) {
  check(S_ISDIR(status.st_mode), "{} is not a folder; remove it, or set OCTET_CACHE_DIR to another",
        folder.string());
  check(status.st_uid == ::geteuid(),
        "the folder {} belongs to another user (number {}); set OCTET_CACHE_DIR to one of yours",
        folder.string(), status.st_uid);
  check((status.st_mode & S_IWOTH) == 0,
        "everybody may write to the folder {}; take that right away (chmod o-w), or set "
        "OCTET_CACHE_DIR to another",
        folder.string());
}

// The cache folder, for one that is directly in it: who may write there can put another folder in
// the place of this one. It may be a link, to another disk: a user made it.
void check_cache_above(const fs::path& folder) {
  const auto cache = env::cache_dir();
  if (!cache || *cache / folder.filename() != folder) return;
  struct stat status = {};
  if (::stat(cache->c_str(), &status) == 0) check_rights(*cache, status);
}

// Whatever the umask; with the folders above it.
void make_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0755) == 0 || errno == EEXIST) return;
  int error_number = errno;
  if (error_number == ENOENT && folder.has_parent_path() && folder.has_relative_path()) {
    make_folder(folder.parent_path());
    if (::mkdir(folder.c_str(), 0755) == 0 || errno == EEXIST) return;
    error_number = errno;
  }
  fail("the folder {} cannot be made: {}", folder.string(), system_error_text(error_number));
}

}  // namespace

void check_own_folder(const fs::path& folder) {
  check_cache_above(folder);
  struct stat status = {};
  if (::lstat(folder.c_str(), &status) != 0) return;
  check(!S_ISLNK(status.st_mode),
        "{} is a link, expected a folder; remove it, or set OCTET_CACHE_DIR to another",
        folder.string());
  check_rights(folder, status);
}

void make_own_folder(const fs::path& folder) {
  check_own_folder(folder);
  make_folder(folder);
  check_own_folder(folder);
}

}  // namespace octet
