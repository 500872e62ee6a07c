// Shows what a checkpoint contains, without loading it.
//
//   const octet::CheckpointSummary summary = octet::inspect_checkpoint("model.safetensors");
//   for (const octet::TensorSummary& tensor : summary.tensors) {
//     std::cout << tensor.name << ' ' << tensor.dtype << ' ' << tensor.bytes << '\n';
//   }
//
// The checkpoint is validated in full, so a summary exists only for usable files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "octet/export.h"

namespace octet {

struct TensorSummary {
  std::string name;
  std::string dtype;  // as in safetensors: "BF16", "I8"; GGUF blocks as in ggml: "Q8_0"
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
  std::string file;  // one of CheckpointSummary::files
};

struct DTypeSummary {
  uint64_t tensors = 0;
  uint64_t bytes = 0;
};

struct CheckpointSummary {
  std::string path;                             // the file or index that was opened
  std::vector<std::string> files;               // names within the folder of `path`, sorted
  std::map<std::string, std::string> metadata;  // of the index and of all files
  std::vector<TensorSummary> tensors;           // sorted by name
  uint64_t total_bytes = 0;                     // of all tensors
  uint64_t parameters = 0;                      // elements of all tensors, whatever their type
  std::map<std::string, DTypeSummary> dtypes;
};

// `path` is a safetensors or GGUF file, a `*.safetensors.index.json`, or a folder that contains one
// of them, possibly given by its name in the Hub's cache. Throws octet::Error if a file is missing,
// broken or of the wrong kind.
OCTET_API CheckpointSummary inspect_checkpoint(const std::string& path);

}  // namespace octet
