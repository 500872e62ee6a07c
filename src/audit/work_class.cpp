#include "audit/work_class.h"

#include <array>
#include <cstddef>

namespace octet::audit {
namespace {

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

std::string_view name_of(WorkClass work) { return kClassNames[static_cast<size_t>(work)].name; }

std::string_view key_of(WorkClass work) { return kClassNames[static_cast<size_t>(work)].key; }

std::optional<WorkClass> work_class_of(std::string_view key) {
  for (size_t i = 0; i < kClassNames.size(); ++i) {
    if (kClassNames[i].key == key) return static_cast<WorkClass>(i);
  }
  return std::nullopt;
}

}  // namespace octet::audit
