// What a model's files would do on this machine: their dialects, which linears run in INT8 as
// stored, which are converted on load, and the memory of each part. Reads no weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/export.h"

namespace octet {

struct StoredLinear {
  std::string name;     // as the file has it
  std::string layer;    // its class: "attention.qkv"
  std::string dialect;  // "comfyui"
  std::string format;   // "INT8 row-wise, ConvRot 256"
  int64_t n = 0, k = 0;
  // "int8": as stored; "int8 on load": converted; "bf16": in floating point, by choice of the file
  // or because the layer is small.
  std::string runs;
  uint64_t file_bytes = 0, memory_bytes = 0;
};

struct ModelPart {
  std::string part;     // "transformer", "unconditional_transformer", "text_encoder", "vae"
  std::string path;     // of the checkpoint
  std::string dialect;  // those of its linears, the commonest first
  std::vector<StoredLinear> linears;
  uint64_t file_bytes = 0;  // of all tensors that are read
  // Of the weights: all of a transformer or VAE, the largest layer of the text encoder, whose
  // layers pass through memory one by one.
  uint64_t memory_bytes = 0;
};

struct ModelSummary {
  std::vector<ModelPart> parts;
  bool is_checkpoint = false;  // one whose tensors inspect_checkpoint() lists
  std::string problem;         // why a checkpoint with weights of a transformer is not a whole one
};

// The parts that are found at `path`: a model's folder as Hugging Face lays it out or its name in
// the Hub's cache, the folder or the file of a transformer; none when it is something else. `base`
// gives what a file lacks. Throws Error when a part of a folder is broken, incomplete, or has
// tensors of no use.
OCTET_API ModelSummary inspect_model(const std::string& path, const std::string& base = "");

}  // namespace octet
