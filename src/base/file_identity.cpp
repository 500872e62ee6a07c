#include "base/file_identity.h"

#include <fmt/format.h>

namespace octet {

std::string identity_of(const MappedFile& file) {
  file.check_intact();
  const MappedFile::Stamp& stamp = file.stamp();
  return fmt::format("{} bytes, inode {}, modified {}, changed {}, samples {:016x}",
                     file.bytes().size(), stamp.inode, stamp.modified_ns, stamp.changed_ns,
                     stamp.samples);
}

}  // namespace octet
