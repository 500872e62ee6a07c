// ComfyUI: <module>.weight with <module>.weight_scale, and a JSON description that names the format
// (comfy_quant.h); files that are older have the scale as <module>.scale_weight, and one marker
// tensor `scaled_fp8` for all.
//
// <module>.pre_quant_scale [k], where there is one, was divided out of the weight's columns, and
// activations are multiplied by it: exactly a transform of the kind smooth, which is undone by
// multiplying the columns of the weight with it.
#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "formats/text.h"
#include "weights/dialect.h"
#include "weights/dialects/coded_weight.h"
#include "weights/dialects/comfy_quant.h"

namespace octet::weights {
namespace {

constexpr int64_t kScaledInputs = 16;  // inputs that share a scale
constexpr float kE2m1[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                             -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

// Where the scale of a row's block lies: tiles of 128 rows and 4 blocks, in which rows that are 32
// apart stand together.
int64_t swizzled(int64_t row, int64_t block, int64_t blocks_per_row) {
  const int64_t tiles_across = ceil_div(blocks_per_row, 4);
  return ((row / 128) * tiles_across + block / 4) * 512 + (row % 32) * 16 + ((row % 128) / 32) * 4 +
         block % 4;
}

// NVFP4: E2M1 codes, two in a byte with the even element in the high nibble, times an E4M3 scale
// per 16 inputs, times one F32 scale for all.
class Nvfp4Weight : public StoredWeight {
 public:
  // <module>.weight U8, <module>.weight_scale F8_E4M3 (or U8 of the same bits) in the swizzled
  // order of tensor cores, <module>.weight_scale_2; `siblings` as in CodedLayout.
  Nvfp4Weight(const Checkpoint& checkpoint, const std::string& module, int64_t rows, int64_t k,
              std::span<const std::string> siblings, StoredTransform transform)
      : StoredWeight(checkpoint, module, rows, k), block_scales_name_(module + ".weight_scale") {
    const std::string scale = module + ".weight_scale_2";
    const std::string codes = module + ".weight";
    const TensorInfo& info = find_tensor(checkpoint, codes);
    // Writers pad both extents to multiples of 16; where that changes nothing, the two are the
    // same.
    const int64_t padded_rows = round_up(rows, kScaledInputs),
                  padded_k = round_up(k, kScaledInputs);
    const bool whole = k % kScaledInputs == 0 && info.shape == FileShape({rows, k / 2});
    const bool padded = info.shape == FileShape({padded_rows, padded_k / 2});
    check(info.dtype == DType::u8 && (whole || padded),
          "{}: tensor {} is {} {}, expected U8 [{}, {}] for NVFP4", checkpoint.path(),
          Quoted{codes}, name_of(info.dtype), to_string(info.shape), padded_rows, padded_k / 2);
    row_bytes_ = padded_k / 2;
    const TensorInfo& scales = find_tensor(checkpoint, block_scales_name_);
    const FileShape expected = {round_up(rows, 128), round_up(padded_k / kScaledInputs, 4)};
    check((scales.dtype == DType::f8_e4m3 || scales.dtype == DType::u8) && scales.shape == expected,
          "{}: tensor {} is {} {}, expected F8_E4M3 {} for NVFP4", checkpoint.path(),
          Quoted{block_scales_name_}, name_of(scales.dtype), to_string(scales.shape),
          to_string(expected));
    scales_ = RowScales(checkpoint, scale, rows);
    check(!scales_.is_per_row(), "{}: tensor {} has {} scales, expected one", checkpoint.path(),
          Quoted{scale}, rows);
    transform_ = std::move(transform);
    dtype_ = DType::bf16;  // a code of 2 bits times a scale of 4 has 6: nothing is lost
    format_ = "NVFP4";
    codes_ = use(checkpoint, codes);
    block_scales_ = use(checkpoint, block_scales_name_);
    use(checkpoint, scale);
    use_present(checkpoint, siblings);
  }

  void read_stored(int64_t row, std::byte* into) const override {
    const std::byte* from = codes_.data() + row * row_bytes_;
    auto* values = reinterpret_cast<bf16_t*>(into);
    const int64_t blocks = ceil_div(k(), kScaledInputs);
    bool finite = true;
    for (int64_t block = 0; block < blocks; ++block) {
      const float factor =
          load_as_f32(DType::f8_e4m3, block_scales_.data(), swizzled(row, block, blocks));
      finite = finite && std::isfinite(factor);
      bf16_t products[16];
      for (size_t code = 0; code < 16; ++code)
        products[code] = from_f32<bf16_t>(kE2m1[code] * factor);
      const int64_t begin = block * kScaledInputs, end = std::min(k(), begin + kScaledInputs);
      for (int64_t j = begin; j + 1 < end; j += 2) {
        const auto pair = static_cast<uint8_t>(from[j / 2]);
        values[j] = products[pair >> 4];
        values[j + 1] = products[pair & 15];
      }
      if ((end - begin) % 2 != 0) {
        values[end - 1] = products[static_cast<uint8_t>(from[end / 2]) >> 4];
      }
    }
    if (!finite) fail_damaged(block_scales_name_, row);
  }

 private:
  std::string block_scales_name_;
  std::span<const std::byte> codes_, block_scales_;
  int64_t row_bytes_ = 0;
};

// What was done to the weight's columns before it was quantized.
StoredTransform transform_of(const Checkpoint& checkpoint, const std::string& module, int64_t k,
                             int64_t rotation_group) {
  const std::string smooth = module + ".pre_quant_scale";
  const bool smoothed = checkpoint.find(smooth) != nullptr;
  if (rotation_group == 0) return smoothed ? read_smooth(checkpoint, smooth, k) : StoredTransform();
  check(!smoothed, "{}: tensor {} comes with a rotation; only one of the two can be read",
        checkpoint.path(), Quoted{smooth});
  check(k % rotation_group == 0,
        "{}: tensor {}: \"convrot_groupsize\" is {}, which does not divide the {} inputs",
        checkpoint.path(), Quoted{module + ".comfy_quant"}, rotation_group, k);
  return {.kind = Transform::rotate, .smooth = {}, .group = rotation_group};
}

bool is_older(const Checkpoint& checkpoint, const std::string& module) {
  return checkpoint.find(module + ".scale_weight") != nullptr;
}

std::unique_ptr<StoredWeight> open_older(const Checkpoint& checkpoint, const std::string& module,
                                         int64_t rows, int64_t k) {
  CodedLayout layout{.codes = module + ".weight",
                     .scales = module + ".scale_weight",
                     .siblings = {module + ".scale_input"}};
  for (const std::string_view prefix : kComfyPrefixes) {
    if (module.starts_with(prefix)) layout.siblings.push_back(std::string(prefix) + "scaled_fp8");
  }
  return std::make_unique<CodedWeight>(checkpoint, module, rows, k, DType::f8_e4m3,
                                       std::move(layout));
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
  if (is_int8 || quant.format == "float8_e4m3fn") {
    return std::make_unique<CodedWeight>(
        checkpoint, module, rows, k, is_int8 ? DType::i8 : DType::f8_e4m3,
        CodedLayout{weight, scale, siblings, std::move(transform), quant.full_precision});
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
