#include "octet/caption.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "formats/boundary.h"
#include "models/family.h"

namespace octet {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

// The family whose prompts are captions.
const models::Family& captioned() {
  for (const models::Family* family : models::families()) {
    if (family->check_prompt != nullptr) return *family;
  }
  fail("caption: no family of models takes captions");
}

// Opening a named pipe waits for its writer, perhaps for ever. Descriptors are open by now, such as
// those of a shell's <(command).
void check_can_be_read(const std::string& path) {
  namespace fs = std::filesystem;
  if (path == "-" || path == "/dev/stdin" || path.starts_with("/dev/fd/")) return;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  check(!fs::is_directory(status), "{}: is a folder, expected the file of one caption", path);
  check(!fs::exists(status) || fs::is_regular_file(status),
        "{}: is a pipe or a device, expected a file; - reads standard input", path);
}

}  // namespace

CaptionReport check_caption(std::string_view text) try {
  return captioned().check_prompt(text);
} catch (...) {
  rethrow_as_error();
}

std::string wrap_plain_text(std::string_view plain_text) try {
  return captioned().wrap_text(plain_text);
} catch (...) {
  rethrow_as_error();
}

// Read rather than mapped, so that pipes work, too.
std::string read_caption(const std::string& path) try {
  const std::string name = path == "-" ? "standard input" : path;
  check_can_be_read(path);
  const std::unique_ptr<std::FILE, CloseFile> file(path == "-" ? stdin
                                                               : std::fopen(path.c_str(), "rbe"));
  check(file != nullptr, "{}: cannot be opened: {}", name, system_error_text(errno));
  const size_t most = captioned().most_prompt_bytes;
  std::string text(most + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  check(std::ferror(file.get()) == 0, "{}: cannot be read: {}", name, system_error_text(errno));
  check(text.size() <= most, "{}: is longer than {} bytes, the limit for captions", name, most);
  return text;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
