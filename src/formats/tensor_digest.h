// Digests of files of tensors: of all bytes, and of only the tensors.
#pragma once

#include <string>

#include "base/thread_pool.h"
#include "formats/tensor_file.h"

namespace octet {

// A SHA-256 that does not depend on metadata, on the order of the tensors, or on how the header is
// written. It is that of one line for each tensor, sorted by name and ended by a newline:
//
//   <SHA-256 of the tensor's bytes> <dtype> [<extent>, ...] <name>
std::string tensor_digest(const TensorFile& file, ThreadPool& pool);

// SHA-256 of a file, as sha256sum prints it.
std::string file_digest(const std::string& path);

}  // namespace octet
