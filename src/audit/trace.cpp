#include "audit/trace.h"

#include <array>
#include <string>
#include <utility>

namespace octet::audit {
namespace {

constexpr std::array<std::string_view, 13> kScalarTypeNames = {
    "unknown", "int8", "uint8", "fp8",   "fp4",   "bf16", "f16",
    "f32",     "f64",  "int16", "int32", "int64", "other"};

using Spelling = std::pair<std::string_view, ScalarType>;

// As PyTorch's profiler writes them, the most frequent first.
constexpr Spelling kExactTypes[] = {
    {"c10::BFloat16", ScalarType::bf16},
    {"float", ScalarType::f32},
    {"c10::Half", ScalarType::f16},
    {"signed char", ScalarType::int8},
    {"", ScalarType::unknown},
    {"Scalar", ScalarType::other},
    {"ScalarList", ScalarType::other},
    {"TensorList", ScalarType::other},
    {"GenericList", ScalarType::other},
    {"Device", ScalarType::other},
    {"bool", ScalarType::other},
    {"long int", ScalarType::int64},
    {"long", ScalarType::int64},
    {"int", ScalarType::int32},
    {"short int", ScalarType::int16},
    {"unsigned char", ScalarType::uint8},
    {"c10::Float8_e4m3fn", ScalarType::fp8},
    {"c10::Float8_e5m2", ScalarType::fp8},
    {"double", ScalarType::f64},
};

// Parts of lower-case names of any program. The first that is found decides: "uint8" holds "int8",
// "bfloat16" holds "float16".
constexpr Spelling kTypeParts[] = {
    {"float8", ScalarType::fp8},  {"fp8", ScalarType::fp8},      {"e4m3", ScalarType::fp8},
    {"e5m2", ScalarType::fp8},    {"float4", ScalarType::fp4},   {"fp4", ScalarType::fp4},
    {"e2m1", ScalarType::fp4},    {"nf4", ScalarType::fp4},      {"bfloat16", ScalarType::bf16},
    {"bf16", ScalarType::bf16},   {"quint8", ScalarType::uint8}, {"uint8", ScalarType::uint8},
    {"qint8", ScalarType::int8},  {"int8", ScalarType::int8},    {"int32", ScalarType::int32},
    {"int16", ScalarType::int16}, {"int64", ScalarType::int64},  {"float16", ScalarType::f16},
    {"fp16", ScalarType::f16},    {"half", ScalarType::f16},     {"float32", ScalarType::f32},
    {"fp32", ScalarType::f32},    {"tf32", ScalarType::f32},     {"float64", ScalarType::f64},
    {"fp64", ScalarType::f64},    {"double", ScalarType::f64},   {"signed char", ScalarType::int8},
};

// Short names that could be a part of anything.
constexpr Spelling kWholeTypes[] = {
    {"s8", ScalarType::int8},   {"i8", ScalarType::int8},    {"char", ScalarType::int8},
    {"u8", ScalarType::uint8},  {"byte", ScalarType::uint8}, {"f8", ScalarType::fp8},
    {"f16", ScalarType::f16},   {"f32", ScalarType::f32},    {"f64", ScalarType::f64},
    {"float", ScalarType::f32}, {"s32", ScalarType::int32},  {"i32", ScalarType::int32},
    {"int", ScalarType::int32}, {"i64", ScalarType::int64},  {"long", ScalarType::int64},
    {"s4", ScalarType::fp4},    {"u4", ScalarType::fp4},     {"int4", ScalarType::fp4},
};

struct ClassNames {
  std::string_view key, name;
};

// In the order of WorkClass.
constexpr std::array<ClassNames, kWorkClasses> kClassNames = {{
    {"int8_gemm", "INT8 GEMM"},
    {"fp8_gemm", "FP8 GEMM"},
    {"four_bit_gemm", "4-bit GEMM"},
    {"half_gemm", "bf16/fp16 GEMM"},
    {"single_gemm", "tf32/fp32 GEMM"},
    {"weight_only_gemm", "weight-only GEMM"},
    {"gemm", "GEMM of unknown type"},
    {"dequantize_weight", "weight dequantization"},
    {"quantize_activation", "activation quantization"},
    {"attention", "attention"},
    {"convolution", "convolution"},
    {"norm", "norm"},
    {"elementwise", "elementwise"},
    {"copy", "copy"},
    {"other", "other"},
    {"unknown", "unknown"},
}};
static_assert(!kClassNames.back().key.empty());

}  // namespace

ScalarType scalar_type_of(std::string_view text) {
  for (const auto& [spelling, type] : kExactTypes) {
    if (text == spelling) return type;
  }
  // Longer texts are not names of types.
  if (text.size() > 64) return ScalarType::other;
  std::string lower(text);
  for (char& byte : lower) {
    if (byte >= 'A' && byte <= 'Z') byte = static_cast<char>(byte - 'A' + 'a');
  }
  for (const std::string_view prefix : {"torch.", "at::", "c10::"}) {
    if (lower.starts_with(prefix)) lower.erase(0, prefix.size());
  }
  for (const auto& [spelling, type] : kWholeTypes) {
    if (lower == spelling) return type;
  }
  // "unsigned char" in any spelling holds "signed char".
  if (lower.find("unsigned char") != lower.npos) return ScalarType::uint8;
  for (const auto& [part, type] : kTypeParts) {
    if (lower.find(part) != lower.npos) return type;
  }
  return ScalarType::other;
}

std::string_view name_of(ScalarType type) { return kScalarTypeNames[static_cast<size_t>(type)]; }

std::string_view name_of(WorkClass work) { return kClassNames[static_cast<size_t>(work)].name; }

std::string_view key_of(WorkClass work) { return kClassNames[static_cast<size_t>(work)].key; }

std::optional<WorkClass> work_class_of(std::string_view key) {
  for (size_t i = 0; i < kClassNames.size(); ++i) {
    if (kClassNames[i].key == key) return static_cast<WorkClass>(i);
  }
  return std::nullopt;
}

}  // namespace octet::audit
