// A tensor of a file as a view, where its bytes can be used in place.
#pragma once

#include <string>

#include "base/error.h"
#include "formats/tensor_file.h"
#include "formats/text.h"
#include "tensor/tensor.h"

namespace octet::test {

inline ConstTensorView view_of(const TensorFile& file, const std::string& name) {
  const TensorInfo& tensor = file.info(name);
  if (!tensor.packing.empty()) {
    fail("{}: tensor {}: is packed in blocks of {}, not in plain elements", file.path(),
         in_quotes(name), tensor.packing);
  }
  if (tensor.shape.size() > static_cast<size_t>(Shape::kMaxRank)) {
    fail("{}: tensor {}: its rank is {}, above the supported {}", file.path(), in_quotes(name),
         tensor.shape.size(), Shape::kMaxRank);
  }
  const auto offset = reinterpret_cast<uintptr_t>(file.bytes(name).data());
  const uint64_t alignment = alignment_of(tensor.dtype);
  if (offset % alignment != 0) {
    fail(
        "{}: tensor {}: its {} data begins at file byte {}, which is not aligned to {} bytes; "
        "save the file again with a current safetensors library",
        file.path(), in_quotes(name), name_of(tensor.dtype), offset, alignment);
  }
  Shape shape;
  for (const int64_t extent : tensor.shape) shape.push_back(extent);
  return ConstTensorView(file.bytes(name).data(), tensor.dtype, shape);
}

}  // namespace octet::test
