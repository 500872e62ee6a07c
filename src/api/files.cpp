#include "octet/files.h"

#include <span>

#include "api/boundary.h"
#include "base/atomic_file.h"

namespace octet {

void write_text_file(const std::string& path, const std::string& text) try {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text.data(), text.size())));
  file.commit();
} catch (...) {
  api::rethrow_as_error();
}

void check_writable(const std::string& path) try {
  // Without commit() the destructor takes the temporary away again.
  const AtomicFile file(path);
} catch (...) {
  api::rethrow_as_error();
}

}  // namespace octet
