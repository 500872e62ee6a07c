#include "base/folder.h"

#include <dirent.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <new>
#include <utility>

namespace octet {

std::vector<std::string> names_in(const std::string& folder, std::error_code& error) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::opendir(folder.c_str()), ::closedir);
  if (opened == nullptr && errno == ENOMEM) throw std::bad_alloc();
  if (opened != nullptr) {
    errno = 0;
    while (const dirent* entry = ::readdir(opened.get())) {
      std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(std::move(name));
      errno = 0;
    }
  }
  error.assign(errno, std::generic_category());
  return names;
}

std::vector<std::string> files_below(const std::string& folder, std::error_code& error) {
  std::vector<std::string> files;
  std::vector<std::string> folders = {""};
  while (!folders.empty()) {
    const std::string below = std::move(folders.back());
    folders.pop_back();
    for (const std::string& name : names_in(folder + "/" + below, error)) {
      const std::string path = below + name;
      std::error_code gone;
      const auto status = std::filesystem::symlink_status(folder + "/" + path, gone);
      if (std::filesystem::is_directory(status)) {
        folders.push_back(path + "/");
      } else {
        files.push_back(path);
      }
    }
    if (error) break;
  }
  return files;
}

}  // namespace octet
