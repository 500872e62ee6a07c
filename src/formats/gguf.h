// Reading one GGUF file, of version 2 or 3, mapped and validated in full before anything is used.
//
// A file is a header of counts, key-value pairs and tensor descriptions, all little-endian, and the
// data, in which every tensor begins at a multiple of the alignment. The reader accepts exactly the
// files whose tensors follow one another with no more than that padding between them. Extents are
// given in the order of safetensors, the innermost last: GGUF has them the other way around.
#pragma once

#include <span>
#include <string>

#include "formats/tensor_file.h"

namespace octet {

// Metadata are the key-value pairs as text; of arrays only their length.
TensorFileHeader parse_gguf(std::span<const std::byte> file, const std::string& path);

class GgufFile : public TensorFile {
 public:
  explicit GgufFile(const std::string& path) : TensorFile(path, parse_gguf) {}
};

}  // namespace octet
