#include "octet/caption.h"

#include <cerrno>
#include <cstdio>
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
