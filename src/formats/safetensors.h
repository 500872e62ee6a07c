// Reading one safetensors file: mapped, not loaded, and validated in full before anything is used.
//
// A file is an 8-byte little-endian header length, a JSON header and the data. The reader accepts
// exactly the files in which every tensor's byte range matches its type and shape and the ranges
// cover the data without gap, overlap or rest. So a range that the reader hands out is inside of
// the mapping and belongs to only one tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "formats/tensor_file.h"

namespace octet {

// The key of the header that holds text about the file; no tensor may have this name.
inline constexpr std::string_view kMetadataKey = "__metadata__";
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

// Validates a whole file in memory. `path` is only used in messages.
TensorFileHeader parse_safetensors(std::span<const std::byte> file, const std::string& path);

class SafetensorsFile : public TensorFile {
 public:
  explicit SafetensorsFile(const std::string& path) : TensorFile(path, parse_safetensors) {}
};

}  // namespace octet
