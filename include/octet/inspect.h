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
  std::string name = {};
  std::string dtype = {};  // as in safetensors: "BF16", "I8"; GGUF blocks as in ggml: "Q8_0"
  std::vector<int64_t> shape = {};
  uint64_t bytes = 0;
  std::string file = {};  // one of CheckpointSummary::files
};

struct DTypeSummary {
  uint64_t tensors = 0;
  uint64_t bytes = 0;
};

struct CheckpointSummary {
  std::string path = {};                             // the file or index that was opened
  std::vector<std::string> files = {};               // names within the folder of `path`, sorted
  std::map<std::string, std::string> metadata = {};  // of the index and of all files
  std::vector<TensorSummary> tensors = {};           // sorted by name
  uint64_t total_bytes = 0;                          // of all tensors
  uint64_t parameters = 0;                           // elements of all tensors, whatever their type
  std::map<std::string, DTypeSummary> dtypes = {};
};

// `path` is a safetensors or GGUF file, a `*.safetensors.index.json`, or a folder that contains one
// of them, possibly given by its name in the Hub's cache. Throws octet::Error if a file is missing,
// broken or of the wrong kind.
OCTET_API CheckpointSummary inspect_checkpoint(const std::string& path);

// --- models ---
// How a model would run: the dialects of its files, which linears run in INT8 as stored, which are
// converted on load, and the memory of each part. Reads no weights.

struct StoredLinear {
  std::string name = {};     // as in the file
  std::string layer = {};    // its class: "attention.qkv"
  std::string dialect = {};  // "comfyui"
  std::string format = {};   // "INT8 row-wise, ConvRot 256"
  int64_t n = 0, k = 0;
  // "int8": as stored; "int8 on load": converted; "bf16": in floating point, because the file says
  // so or the layer is small.
  std::string runs = {};
  uint64_t file_bytes = 0, memory_bytes = 0;
};

struct ModelPart {
  std::string part = {};     // "transformer", "unconditional_transformer", "text_encoder", "vae"
  std::string path = {};     // of the checkpoint
  std::string dialect = {};  // those of its linears, most common first
  std::vector<StoredLinear> linears = {};
  uint64_t file_bytes = 0;  // of all tensors read
  // Of the weights: all of a network or VAE, the largest layer of the text encoder, whose layers
  // pass through memory one by one.
  uint64_t memory_bytes = 0;
};

struct ModelSummary {
  std::vector<ModelPart> parts = {};
  bool is_checkpoint = false;  // inspect_checkpoint() can list its tensors
  std::string problem = {};    // why a checkpoint with a network's weights is incomplete
};

// The parts found at `path`: a model's folder in Hugging Face's layout or its name in the Hub's
// cache, or the folder or file of one network; none if it is something else. `base` supplies what a
// file lacks. Throws Error if a part of a folder is broken, incomplete, or has unused tensors.
OCTET_API ModelSummary inspect_model(const std::string& path, const std::string& base = "");

}  // namespace octet
