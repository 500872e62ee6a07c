// How quantized linears are written, so that others can read them.
//
// comfyui: <module>.weight I8, .weight_scale F32 [rows, 1] and a comfy_quant blob; one file for
// each network. transformerlab: <network>.<module>.wq, .ws and .smooth; one file for all.
#pragma once

#include <optional>
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

// What a linear whose FP8 codes are written as they are has beside them, under int8_names().
struct KeptFp8 {
  float scale = 1;     // of all rows, F32 []
  std::string marker;  // JSON
};
// None where readers of the dialect would not know it: a scale per row, which comfy-kitchen's
// kernels refuse or misread; scales of inputs; other formats; transformerlab, whose readers know
// floating point alone.
std::optional<KeptFp8> kept_fp8(OutputDialect dialect, const StoredWeight& weight);
std::vector<TensorDeclaration> declare_fp8(OutputDialect dialect, const std::string& module,
                                           int64_t rows, int64_t k, const KeptFp8& kept);

}  // namespace octet::weights
