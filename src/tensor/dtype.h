// Element types: every type that a safetensors file can name, and the conversions that the numeric
// contract needs. Widening to f32 is exact; narrowing rounds once, to nearest, ties to even.
// Narrowing a NaN gives the one canonical quiet NaN of the target type.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace octet {

enum class DType : uint8_t {
  f64,
  f32,
  f16,
  bf16,
  f8_e4m3,
  f8_e5m2,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  f8_e8m0,
  f6_e2m3,
  f6_e3m2,
  f4,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean,
  c64,
};
inline constexpr int kDTypeCount = static_cast<int>(DType::c64) + 1;

// Width of one element in bits; the f6 and f4 types do not fill whole bytes.
int bits_of(DType dtype);

// The safetensors spelling: "F32", "BF16", "F8_E4M3", "I8", "BOOL", ...
std::string_view name_of(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);

// 16-bit floats as distinct types, so that a pointer says what it points at.
struct bf16_t {
  uint16_t bits;
};
struct f16_t {
  uint16_t bits;
};

// always_inline, and builtins instead of std functions: files compiled for a wide instruction set
// use these too, and must not leave behind an out-of-line copy that the linker could pick for all.
#define OCTET_INLINE [[gnu::always_inline]] inline constexpr

OCTET_INLINE float to_f32(float value) { return value; }

OCTET_INLINE float to_f32(bf16_t value) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(value.bits) << 16);
}

OCTET_INLINE float to_f32(f16_t value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  const uint32_t exponent = (value.bits >> 10) & 0x1fu;
  uint32_t mantissa = value.bits & 0x3ffu;
  if (exponent == 31) return __builtin_bit_cast(float, sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) {
    return __builtin_bit_cast(float, sign | ((exponent + 112) << 23) | (mantissa << 13));
  }
  // Subnormal: the value is mantissa * 2^-24, exact in f32.
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

template <class T>
constexpr T from_f32(float value);

template <>
OCTET_INLINE float from_f32<float>(float value) {
  return value;
}

template <>
OCTET_INLINE bf16_t from_f32<bf16_t>(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fc0};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

template <>
OCTET_INLINE f16_t from_f32<f16_t>(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {0x7e00};
  if (magnitude >= 0x47800000u) return {static_cast<uint16_t>(sign | 0x7c00u)};  // >= 65536
  if (magnitude < 0x38800000u) {  // below 2^-14: a multiple of 2^-24, or zero
    // Adding 0.5 puts the ulp at 2^-24, so the hardware's own rounding does the work.
    const float shifted = __builtin_bit_cast(float, magnitude) + 0.5f;
    return {static_cast<uint16_t>(sign | (__builtin_bit_cast(uint32_t, shifted) - 0x3f000000u))};
  }
  const uint32_t rounded = magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u);
  return {static_cast<uint16_t>(sign | (rounded >> 13))};
}

#undef OCTET_INLINE

// fp8 as checkpoints store it: the "fn" kind, without infinities, 0x7f is NaN.
float f8_e4m3_to_f32(uint8_t bits);
// Of every code: a table is several times as fast as taking the bits apart.
const std::array<float, 256>& f8_e4m3_values();

}  // namespace octet
