// The dialects in which checkpoints store linears. Each is one file under dialects/, with one entry
// in the list of dialect.cpp; files may mix them from module to module, and do.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "weights/stored_weight.h"

namespace octet::weights {

struct Dialect {
  const char* name;         // "comfyui"
  const char* description;  // "ComfyUI: scaled FP8, INT8 with or without ConvRot"
  // Whether the checkpoint has this module in this dialect. Asked in the order of the list; cheap.
  bool (*stores)(const Checkpoint& checkpoint, const std::string& module);
  // Throws Error, naming file and tensor, for what does not match the dialect.
  std::unique_ptr<StoredWeight> (*open)(const Checkpoint& checkpoint, const std::string& module,
                                        int64_t rows, int64_t k);
};

// Dialect::open of a dialect that has one kind of weight.
template <class Weight>
std::unique_ptr<StoredWeight> open_as(const Checkpoint& checkpoint, const std::string& module,
                                      int64_t rows, int64_t k) {
  return std::make_unique<Weight>(checkpoint, module, rows, k);
}

std::span<const Dialect> dialects();

// The dialect of a module; nullptr when the checkpoint does not have it.
const Dialect* dialect_of(const Checkpoint& checkpoint, const std::string& module);

// Throws Error when the module is missing.
std::unique_ptr<StoredWeight> open_weight(const Checkpoint& checkpoint, const std::string& module,
                                          int64_t rows, int64_t k);

// The entries of the list, from their files.
extern const Dialect kComfyDialect, kNf4Dialect, kTransformerLabDialect, kCompressedTensorsDialect,
    kGgufDialect, kScaledFp8Dialect, kPlainDialect;

}  // namespace octet::weights
