// ComfyUI's description of a quantized linear: a small JSON object, as the bytes of the tensor
// <module>.comfy_quant or under the module's name in the metadata entry `_quantization_metadata`.
#pragma once

#include <optional>
#include <string>

#include "formats/checkpoint.h"

namespace octet::weights {

struct ComfyQuant {
  std::string format;           // "int8_tensorwise", "float8_e4m3fn", "nvfp4", ...
  bool full_precision = false;  // multiply with dequantized weights
  int64_t rotation_group = 0;   // of ConvRot: 4, 16, 64, 256 or 1024; 0 without a rotation
};

// Throws Error, beginning with `what`, for a field of the wrong type; unknown fields are ignored.
ComfyQuant parse_comfy_quant(const nlohmann::json& root, const std::string& what);

// Whether the checkpoint describes this module so; cheap. Throws Error for broken metadata.
bool has_comfy_quant(const Checkpoint& checkpoint, const std::string& module);
// The description, for a module that has one.
ComfyQuant read_comfy_quant(const Checkpoint& checkpoint, const std::string& module);

// Prefixes of modules in ComfyUI's files.
inline constexpr std::string_view kComfyPrefixes[] = {"", "model.diffusion_model.",
                                                      "diffusion_model."};

}  // namespace octet::weights
