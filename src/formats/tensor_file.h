// A file of named tensors, mapped, not loaded: what readers of the several formats have in common.
// A header that was validated in full comes first; so a range that is handed out lies inside of the
// mapping and belongs to only one tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file_identity.h"
#include "base/mapped_file.h"
#include "formats/tensor_info.h"

namespace octet {

struct TensorFileHeader {
  std::map<std::string, std::string> metadata;
  std::vector<TensorInfo> tensors;  // in the order of their data
  uint64_t data_begin = 0;          // where the data starts in the file
};

class TensorFile {
 public:
  // Validates a whole file in memory, whose path is only used in messages.
  using Parse = TensorFileHeader(std::span<const std::byte> file, const std::string& path);
  TensorFile(const std::string& path, Parse& parse);

  const std::string& path() const { return file_.path(); }
  std::string identity() const { return identity_of(file_); }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  const std::vector<TensorInfo>& tensors() const { return header_.tensors; }

  const TensorInfo* find(std::string_view name) const;    // nullptr when absent
  const TensorInfo& info(const std::string& name) const;  // throws Error when absent

  // The tensor's bytes in the mapping, which may lie at any address.
  std::span<const std::byte> bytes(const std::string& name) const;

  // Throws Error when the file became shorter, so that bytes may have been read as zeros. To be
  // asked after reading, before the result is used; see MappedFile::check_intact.
  void check_intact() const { file_.check_intact(); }
  // Copies a part of a tensor's bytes; see MappedFile::copy.
  void copy(std::span<const std::byte> bytes, std::byte* into) const { file_.copy(bytes, into); }
  // Begins to read a tensor's bytes; see MappedFile::read_ahead.
  void read_ahead(std::span<const std::byte> bytes) const { file_.read_ahead(bytes); }
  // Gives the memory of the pages of a tensor's bytes back; they stay valid. See
  // MappedFile::release.
  void release(std::span<const std::byte> bytes) const { file_.release(bytes); }

 private:
  MappedFile file_;
  TensorFileHeader header_;
  // The keys look at the names in header_.tensors, which stay in place when this object moves.
  std::unordered_map<std::string_view, size_t> index_;
};

}  // namespace octet
