// Writing a safetensors file in one pass, so that a checkpoint larger than memory can be made.
//
// All tensors are declared first, because the header precedes the data; then the bytes of each
// follow in the order of layout(). The file appears under its name with commit(), whole, or never.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "formats/safetensors_header.h"
#include "formats/tensor_info.h"

namespace octet {

class SafetensorsWriter {
 public:
  // Throws Error when a name appears twice or is not UTF-8, when a shape is impossible, or when the
  // file cannot be created.
  SafetensorsWriter(std::string path, const std::vector<TensorDeclaration>& tensors,
                    const std::map<std::string, std::string>& metadata = {});

  // The tensors in the order in which write() expects them.
  const std::vector<TensorInfo>& layout() const { return layout_; }

  // Appends to the tensor `name`, which must be the next that is not complete; any number of pieces
  // makes a tensor. After an Error the temporary file is gone and the writer refuses all further
  // calls.
  void write(const std::string& name, std::span<const std::byte> piece);

  // Refuses while a tensor is missing or incomplete.
  void commit();

 private:
  void write_piece(const std::string& name, std::span<const std::byte> piece);
  void skip_complete();

  std::string path_;
  std::vector<TensorInfo> layout_;
  std::unique_ptr<AtomicFile> file_;  // empty after commit() or an error
  size_t current_ = 0;                // the tensor being written
  uint64_t data_written_ = 0;         // bytes after the header
};

}  // namespace octet
