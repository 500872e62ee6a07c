// Reading one safetensors file: mapped, not loaded, and validated in full before anything is used.
//
// A file is an 8-byte little-endian header length, a JSON header and the data. The reader accepts
// exactly the files in which every tensor's byte range matches its type and shape and the ranges
// cover the data without gap, overlap or rest. So a range that the reader hands out is inside of
// the mapping and belongs to one tensor alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mapped_file.h"
#include "formats/tensor_info.h"
#include "tensor/tensor.h"

namespace octet {

// The key of the header that holds text about the file; no tensor may have this name.
inline constexpr std::string_view kMetadataKey = "__metadata__";
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<TensorInfo> tensors;  // in the order of their data
  uint64_t data_begin = 0;          // where the data starts in the file
};

// Validates a whole file in memory. `path` is only used in messages.
SafetensorsHeader parse_safetensors(std::span<const std::byte> file, const std::string& path);

class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  const std::vector<TensorInfo>& tensors() const { return header_.tensors; }

  const TensorInfo* find(std::string_view name) const;    // nullptr when absent
  const TensorInfo& info(const std::string& name) const;  // throws Error when absent

  // The tensor's bytes in the mapping, which may lie at any address.
  std::span<const std::byte> bytes(const std::string& name) const;

  // The same as a view. Throws Error when the rank is above Shape::kMaxRank, or when the bytes are
  // not aligned for the type (files by old or foreign writers): copy bytes() then.
  ConstTensorView view(const std::string& name) const;

  // Gives the memory of the tensor's pages back; its bytes stay valid. See MappedFile::release.
  void release(const std::string& name) const { file_.release(bytes(name)); }

 private:
  MappedFile file_;
  SafetensorsHeader header_;
  // The keys look at the names in header_.tensors, which stay in place when this object moves.
  std::unordered_map<std::string_view, size_t> index_;
};

}  // namespace octet
