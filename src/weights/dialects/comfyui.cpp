// ComfyUI: <module>.weight with <module>.weight_scale, and a JSON description that names the format
// (comfy_quant.h); files that are older have the scale as <module>.scale_weight, and one marker
// tensor `scaled_fp8` for all.
//
// <module>.pre_quant_scale [k], where there is one, was divided out of the weight's columns, and
// activations are multiplied by it: exactly a transform of the kind smooth, which is undone by
// multiplying the columns of the weight with it.
#include "base/error.h"
#include "formats/text.h"
#include "weights/dialect.h"
#include "weights/dialects/comfy_quant.h"
#include "weights/dialects/fp8_weight.h"
#include "weights/dialects/int8_weight.h"
#include "weights/dialects/nvfp4_weight.h"

namespace octet::weights {
namespace {

// What was done to the weight's columns before it was quantized.
StoredTransform transform_of(const Checkpoint& checkpoint, const std::string& module, int64_t k,
                             int64_t rotation_group) {
  const std::string smooth = module + ".pre_quant_scale";
  const bool smoothed = checkpoint.find(smooth) != nullptr;
  if (rotation_group == 0) return smoothed ? read_smooth(checkpoint, smooth, k) : StoredTransform();
  check(!smoothed, "{}: tensor {} stands beside a rotation; only one of the two can be read",
        checkpoint.path(), in_quotes(smooth));
  check(k % rotation_group == 0,
        "{}: tensor {}: \"convrot_groupsize\" is {}, which does not divide the {} inputs",
        checkpoint.path(), in_quotes(module + ".comfy_quant"), rotation_group, k);
  return {.kind = Transform::rotate, .smooth = {}, .group = rotation_group};
}

bool is_older(const Checkpoint& checkpoint, const std::string& module) {
  return checkpoint.find(module + ".scale_weight") != nullptr;
}

std::unique_ptr<StoredWeight> open_older(const Checkpoint& checkpoint, const std::string& module,
                                         int64_t rows, int64_t k) {
  Fp8Layout layout{.codes = module + ".weight",
                   .scales = module + ".scale_weight",
                   .siblings = {module + ".scale_input"},
                   .transform = {}};
  for (const std::string_view prefix : kComfyPrefixes) {
    if (module.starts_with(prefix)) layout.siblings.push_back(std::string(prefix) + "scaled_fp8");
  }
  return std::make_unique<Fp8Weight>(checkpoint, module, rows, k, std::move(layout));
}

bool stores_comfy(const Checkpoint& checkpoint, const std::string& module) {
  return has_comfy_quant(checkpoint, module) || is_older(checkpoint, module);
}

std::unique_ptr<StoredWeight> open_comfy(const Checkpoint& checkpoint, const std::string& module,
                                         int64_t rows, int64_t k) {
  if (!has_comfy_quant(checkpoint, module)) return open_older(checkpoint, module, rows, k);
  const ComfyQuant quant = read_comfy_quant(checkpoint, module);
  const std::string weight = module + ".weight", scale = module + ".weight_scale";
  const std::vector<std::string> siblings = {module + ".comfy_quant", module + ".input_scale",
                                             module + ".pre_quant_scale"};
  const bool is_int8 = quant.format == "int8_tensorwise";
  StoredTransform transform =
      transform_of(checkpoint, module, k, is_int8 ? quant.rotation_group : 0);
  if (is_int8) {
    return std::make_unique<Int8Weight>(
        checkpoint, module, rows, k,
        Int8Layout{weight, scale, siblings, std::move(transform), quant.full_precision});
  }
  if (quant.format == "float8_e4m3fn") {
    return std::make_unique<Fp8Weight>(checkpoint, module, rows, k,
                                       Fp8Layout{weight, scale, siblings, std::move(transform)});
  }
  if (quant.format == "nvfp4") {
    return std::make_unique<Nvfp4Weight>(checkpoint, module, rows, k, siblings,
                                         std::move(transform));
  }
  fail(
      "{}: tensor {}: the ComfyUI format {} is not read; expected int8_tensorwise, float8_e4m3fn "
      "or nvfp4",
      checkpoint.path(), in_quotes(weight), in_quotes(quant.format));
}

}  // namespace

const Dialect kComfyDialect = {"comfyui",
                               "ComfyUI: INT8 with or without ConvRot, scaled FP8, NVFP4",
                               stores_comfy, open_comfy};

}  // namespace octet::weights
