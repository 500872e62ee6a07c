// Where tensors go in a safetensors file, and the header that says so.
//
// The format allows no padding between tensors, so the layout groups them by alignment, the widest
// first, and keeps the declared order within a group; with data that starts at a multiple of 64,
// every tensor can be used in place by a reader.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/tensor_info.h"

namespace octet {

struct TensorDeclaration {
  std::string name;
  DType dtype = DType::f32;
  FileShape shape;
};

// The declared tensors in the order of their data. Throws Error when a name appears twice, is not
// UTF-8 or is reserved, or when a shape is impossible. `path` is only used in messages.
std::vector<TensorInfo> lay_out_tensors(const std::string& path,
                                        const std::vector<TensorDeclaration>& tensors);

// What precedes the data: the 8-byte length and the JSON text, padded to a multiple of 64.
std::string header_bytes(const std::string& path, const std::vector<TensorInfo>& layout,
                         const std::map<std::string, std::string>& metadata);

}  // namespace octet
