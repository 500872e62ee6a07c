#include "formats/safetensors_metadata.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <span>

#include "base/atomic_file.h"
#include "base/error.h"
#include "formats/safetensors.h"
#include "formats/safetensors_header.h"

namespace octet {

void check_takes_metadata(const std::string& path) {
  check(path.ends_with(".safetensors"),
        "{}: is not a safetensors file, and only those can be stamped", path);
  std::error_code ignored;
  check(
      !std::filesystem::is_symlink(path, ignored),
      "{}: is a symbolic link, expected the file itself; copy the model first if it is in a cache",
      path);
}

void set_safetensors_metadata(const std::string& path, const std::string& key,
                              const std::string& value) {
  check_takes_metadata(path);
  const SafetensorsFile file(path);
  std::map<std::string, std::string> metadata = file.metadata();
  metadata[key] = value;
  const std::string header = header_bytes(path, file.tensors(), metadata);
  AtomicFile written(path);
  written.write(std::as_bytes(std::span(header)));
  constexpr size_t kPiece = size_t{8} << 20;
  // The tensors cover the data without a gap, in this order.
  for (const TensorInfo& tensor : file.tensors()) {
    const std::span<const std::byte> bytes = file.bytes(tensor.name);
    for (size_t at = 0; at < bytes.size(); at += kPiece) {
      const auto piece = bytes.subspan(at, std::min(kPiece, bytes.size() - at));
      written.write(piece);
      file.release(piece);
    }
  }
  file.check_intact();  // zeros for bytes that could not be read must not replace it
  written.commit();
}

}  // namespace octet
