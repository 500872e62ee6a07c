#include "octet/tools/files.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <span>

#include "base/atomic_file.h"
#include "base/error.h"
#include "formats/boundary.h"

namespace octet {

void write_text_file(const std::string& path, const std::string& text) try {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text.data(), text.size())));
  file.commit();
} catch (...) {
  rethrow_as_error();
}

void check_writable(const std::string& path) try {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_fifo(status)) {
    // Opening and closing a pipe would be end-of-file for its reader.
    check(::access(path.c_str(), W_OK) == 0, "{}: cannot be opened: {}", path,
          system_error_text(errno));
    return;
  }
  // Without commit() the destructor removes the temporary file.
  const AtomicFile file(path);
} catch (...) {
  rethrow_as_error();
}

void make_folder_of(const std::string& path) try {
  namespace fs = std::filesystem;
  std::error_code error;
  const std::string folder = folder_of(follow_links(path));
  if (fs::exists(folder, error)) return;  // what is wrong with it, whoever writes will say
  fs::create_directories(folder, error);
  check(!error, "{}: its folder cannot be made: {}", path, error.message());
} catch (...) {
  rethrow_as_error();
}

std::string written_file(const std::string& path) try {
  namespace fs = std::filesystem;
  if (path.empty()) return {};
  std::error_code error;
  const fs::path whole = fs::absolute(follow_links(path), error);
  return error ? "" : fs::weakly_canonical(whole, error).string();
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
