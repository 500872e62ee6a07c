// What a checkpoint says about one tensor, and the size that its type and shape imply.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace octet {

// Unlike Shape, any rank: files may hold tensors that no op of ours takes.
using FileShape = std::vector<int64_t>;
uint64_t elements_of(const FileShape& shape);

struct TensorInfo {
  std::string name;
  DType dtype = DType::f32;
  FileShape shape;
  uint64_t begin = 0;  // byte range [begin, end) within the data that follows the header
  uint64_t end = 0;
  // How elements are packed into blocks of bytes, in ggml's words: "Q8_0", "Q4_K". The dtype is U8
  // then, the shape is that of the elements. Empty for plain elements of the dtype.
  std::string packing;

  uint64_t bytes() const { return end - begin; }
  uint64_t elements() const { return elements_of(shape); }
};

std::string to_string(const FileShape& shape);  // "[512, 4608]"

// Bytes of a dense tensor. Throws Error, naming the path and the tensor, when an extent is
// negative, when the size overflows, or when elements of less than a byte do not fill the last
// byte. Overflow is judged without zero extents: strides of an empty tensor must be representable
// too.
uint64_t storage_bytes(const std::string& path, const std::string& tensor, DType dtype,
                       const FileShape& shape);

// The alignment in memory that plain loads of this type need: 1, 2, 4 or 8.
uint64_t alignment_of(DType dtype);

}  // namespace octet
