#include "octet/caption.h"

#include <cerrno>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "formats/boundary.h"
#include "models/ideogram4/caption.h"

namespace octet {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

}  // namespace

CaptionReport check_caption(std::string_view text) try {
  return ideogram4::check_caption(text);
} catch (...) {
  rethrow_as_error();
}

std::string wrap_plain_text(std::string_view plain_text) try {
  return ideogram4::wrap_plain_text(plain_text);
} catch (...) {
  rethrow_as_error();
}

// Read rather than mapped, because pipes are welcome too.
std::string read_caption(const std::string& path) try {
  const std::string name = path == "-" ? "standard input" : path;
  const std::unique_ptr<std::FILE, CloseFile> file(path == "-" ? stdin
                                                               : std::fopen(path.c_str(), "rbe"));
  check(file != nullptr, "{}: cannot be opened: {}", name, system_error_text(errno));
  std::string text(ideogram4::kMaxCaptionBytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  check(std::ferror(file.get()) == 0, "{}: cannot be read: {}", name, system_error_text(errno));
  check(text.size() <= ideogram4::kMaxCaptionBytes,
        "{}: is longer than {} bytes, the limit for captions", name, ideogram4::kMaxCaptionBytes);
  return text;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
