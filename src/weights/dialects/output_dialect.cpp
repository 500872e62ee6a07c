#include "weights/dialects/output_dialect.h"

#include <fmt/format.h>

#include "base/error.h"

namespace octet::weights {
namespace {

// For a source that does not say how its FP8 is multiplied: by inputs as they are. ComfyUI would
// otherwise round these to FP8, too.
constexpr const char* kFp8Weight =
    R"({"format": "float8_e4m3fn", "full_precision_matrix_mult": true})";

const UsedTensor* find_used(const StoredWeight& weight, const char* suffix) {
  for (const UsedTensor& tensor : weight.tensors()) {
    if (tensor.name == weight.module() + suffix) return &tensor;
  }
  return nullptr;
}

}  // namespace

bool can_say(OutputDialect dialect, Transform transform) {
  if (transform == Transform::none) return true;
  return (transform == Transform::rotate) == (dialect == OutputDialect::comfyui);
}

Int8Names int8_names(OutputDialect dialect, const std::string& module,
                     const StoredTransform& transform) {
  if (dialect == OutputDialect::comfyui) {
    return {module + ".weight", module + ".weight_scale", "", module + ".comfy_quant"};
  }
  return {module + ".wq", module + ".ws",
          transform.kind == Transform::smooth ? module + ".smooth" : "", ""};
}

std::vector<TensorDeclaration> declare_int8(OutputDialect dialect, const std::string& module,
                                            int64_t rows, int64_t k,
                                            const StoredTransform& transform) {
  check(can_say(dialect, transform.kind), "{}: the dialect {} cannot express its transform", module,
        word_of(dialect));
  const Int8Names names = int8_names(dialect, module, transform);
  std::vector<TensorDeclaration> tensors;
  tensors.push_back({names.codes, DType::i8, {rows, k}});
  const bool with_column = dialect == OutputDialect::comfyui;
  tensors.push_back({names.scales, DType::f32, with_column ? FileShape{rows, 1} : FileShape{rows}});
  if (!names.smooth.empty()) tensors.push_back({names.smooth, DType::f32, {k}});
  if (!names.marker.empty()) {
    tensors.push_back(
        {names.marker, DType::u8, {static_cast<int64_t>(comfy_quant(transform).size())}});
  }
  return tensors;
}

std::string comfy_quant(const StoredTransform& transform) {
  if (transform.kind != Transform::rotate) return R"({"format": "int8_tensorwise"})";
  return fmt::format(R"({{"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": {}}})",
                     transform.group);
}

std::optional<KeptFp8> kept_fp8(OutputDialect dialect, const StoredWeight& weight) {
  const bool readable =
      dialect == OutputDialect::comfyui && weight.raw() && weight.raw()->dtype == DType::f8_e4m3 &&
      !weight.is_scaled_per_row() && weight.transform().kind == Transform::none &&
      find_used(weight, ".input_scale") == nullptr && find_used(weight, ".scale_input") == nullptr;
  if (!readable) return std::nullopt;
  const UsedTensor* marker = find_used(weight, ".comfy_quant");
  if (marker == nullptr) return KeptFp8{weight.scale(0), kFp8Weight};
  const auto* text = reinterpret_cast<const char*>(marker->bytes.data());
  return KeptFp8{weight.scale(0), std::string(text, marker->bytes.size())};
}

std::vector<TensorDeclaration> declare_fp8(OutputDialect dialect, const std::string& module,
                                           int64_t rows, int64_t k, const KeptFp8& kept) {
  const Int8Names names = int8_names(dialect, module, {});
  return {{names.codes, DType::f8_e4m3, {rows, k}},
          {names.scales, DType::f32, {}},
          {names.marker, DType::u8, {static_cast<int64_t>(kept.marker.size())}}};
}

}  // namespace octet::weights
