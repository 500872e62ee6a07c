// How a model would run: the dialects of its files, which linears run in INT8 as stored, which are
// converted on load, and the memory of each part. Reads no weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/export.h"

namespace octet {

struct StoredLinear {
  std::string name;     // as in the file
  std::string layer;    // its class: "attention.qkv"
  std::string dialect;  // "comfyui"
  std::string format;   // "INT8 row-wise, ConvRot 256"
  int64_t n = 0, k = 0;
  // "int8": as stored; "int8 on load": converted; "bf16": in floating point, because the file says
  // so or the layer is small.
  std::string runs;
  uint64_t file_bytes = 0, memory_bytes = 0;
};

struct ModelPart {
  std::string part;     // "transformer", "unconditional_transformer", "text_encoder", "vae"
  std::string path;     // of the checkpoint
  std::string dialect;  // those of its linears, most common first
  std::vector<StoredLinear> linears;
  uint64_t file_bytes = 0;  // of all tensors read
  // Of the weights: all of a network or VAE, the largest layer of the text encoder, whose layers
  // pass through memory one by one.
  uint64_t memory_bytes = 0;
};

struct ModelSummary {
  std::vector<ModelPart> parts;
  bool is_checkpoint = false;  // inspect_checkpoint() can list its tensors
  std::string problem;         // why a checkpoint with a network's weights is incomplete
};

// The parts found at `path`: a model's folder in Hugging Face's layout or its name in the Hub's
// cache, or the folder or file of one network; none if it is something else. `base` supplies what a
// file lacks. Throws Error if a part of a folder is broken, incomplete, or has unused tensors.
OCTET_API ModelSummary inspect_model(const std::string& path, const std::string& base = "");

}  // namespace octet
