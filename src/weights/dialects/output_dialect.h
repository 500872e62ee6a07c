// How quantized linears are written, so that others can read them.
//
// comfyui: <module>.weight I8, .weight_scale F32 [rows, 1] and a comfy_quant blob; one file for
// each network. transformerlab: <network>.<module>.wq, .ws and .smooth; one file for all.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "formats/safetensors_header.h"
#include "octet/quantize.h"
#include "weights/stored_weight.h"

namespace octet::weights {

// Whether a transform of activations can be said in the dialect.
bool can_say(OutputDialect dialect, Transform transform);

// The tensors of one INT8 module.
struct Int8Names {
  std::string codes;   // I8 [rows, k]
  std::string scales;  // F32 [rows, 1] or [rows]
  std::string smooth;  // F32 [k], or empty
  std::string marker;  // U8, or empty
};
Int8Names int8_names(OutputDialect dialect, const std::string& module,
                     const StoredTransform& transform);
std::vector<TensorDeclaration> declare_int8(OutputDialect dialect, const std::string& module,
                                            int64_t rows, int64_t k,
                                            const StoredTransform& transform);
// The content of the marker: JSON.
std::string comfy_quant(const StoredTransform& transform);

}  // namespace octet::weights
