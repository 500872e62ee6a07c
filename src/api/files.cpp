#include "octet/files.h"

#include <span>

#include "base/atomic_file.h"

namespace octet {

void write_text_file(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text.data(), text.size())));
  file.commit();
}

// Without commit() the destructor takes the temporary away again.
void check_writable(const std::string& path) { const AtomicFile file(path); }

}  // namespace octet
