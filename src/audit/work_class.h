// What a kernel or an op does, as far as its speed is concerned.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace octet::audit {

enum class WorkClass : uint8_t {
  int8_gemm,            // int8 x int8 -> int32 on integer units
  fp8_gemm,             // FP8 operands (e4m3, e5m2, mxfp8)
  four_bit_gemm,        // INT4 x INT4 or FP4 x FP4 (NVFP4, MXFP4), on units of their own
  half_gemm,            // bf16 or fp16
  single_gemm,          // tf32, fp32 or fp64
  weight_only_gemm,     // reads 8- or 4-bit weights, widens them inside, multiplies in bf16 or fp16
  gemm,                 // a product, in a type that nothing tells
  dequantize_weight,    // a weight-sized tensor of codes becomes bf16, fp16 or fp32
  quantize_activation,  // activations become codes, with or without a norm before
  attention,
  convolution,
  norm,
  elementwise,  // also reductions, softmax, rotary embeddings, activation functions
  copy,         // also casts between floating types, transposes, fills
  other,        // known, and none of these: sorts, random numbers, collectives
  unknown,      // nothing tells; listed by name in every report
};
inline constexpr int kWorkClasses = static_cast<int>(WorkClass::unknown) + 1;

// "INT8 GEMM", "weight dequantization": for people.
std::string_view name_of(WorkClass work);
// "int8_gemm", "dequantize_weight": for data files and JSON.
std::string_view key_of(WorkClass work);
std::optional<WorkClass> work_class_of(std::string_view key);

constexpr bool is_gemm(WorkClass work) { return work <= WorkClass::gemm; }

}  // namespace octet::audit
