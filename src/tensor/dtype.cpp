#include "tensor/dtype.h"

#include <cmath>
#include <limits>

namespace octet {
namespace {

struct Entry {
  DType dtype;
  std::string_view name;
  int bits;
};

constexpr Entry kEntries[] = {
    {DType::f64, "F64", 64},
    {DType::f32, "F32", 32},
    {DType::f16, "F16", 16},
    {DType::bf16, "BF16", 16},
    {DType::f8_e4m3, "F8_E4M3", 8},
    {DType::f8_e5m2, "F8_E5M2", 8},
    {DType::f8_e4m3fnuz, "F8_E4M3FNUZ", 8},
    {DType::f8_e5m2fnuz, "F8_E5M2FNUZ", 8},
    {DType::f8_e8m0, "F8_E8M0", 8},
    {DType::f6_e2m3, "F6_E2M3", 6},
    {DType::f6_e3m2, "F6_E3M2", 6},
    {DType::f4, "F4", 4},
    {DType::i64, "I64", 64},
    {DType::i32, "I32", 32},
    {DType::i16, "I16", 16},
    {DType::i8, "I8", 8},
    {DType::u64, "U64", 64},
    {DType::u32, "U32", 32},
    {DType::u16, "U16", 16},
    {DType::u8, "U8", 8},
    {DType::boolean, "BOOL", 8},
    {DType::c64, "C64", 64},
};

const Entry& entry_of(DType dtype) { return kEntries[static_cast<size_t>(dtype)]; }

constexpr bool table_follows_the_enum() {
  for (size_t i = 0; i < std::size(kEntries); ++i) {
    if (static_cast<size_t>(kEntries[i].dtype) != i) return false;
  }
  return true;
}
static_assert(std::size(kEntries) == kDTypeCount && table_follows_the_enum(),
              "kEntries must list the types in the order of DType");

}  // namespace

int bits_of(DType dtype) { return entry_of(dtype).bits; }

std::string_view name_of(DType dtype) { return entry_of(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.dtype;
  }
  return std::nullopt;
}

float f8_e4m3_to_f32(uint8_t bits) {
  if ((bits & 0x7f) == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  const int exponent = (bits & 0x7f) >> 3, mantissa = bits & 7;
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(mantissa), -9)
                              : std::ldexp(static_cast<float>(mantissa + 8), exponent - 10);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

const std::array<float, 256>& f8_e4m3_values() {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> made{};
    for (size_t code = 0; code < made.size(); ++code) {
      made[code] = f8_e4m3_to_f32(static_cast<uint8_t>(code));
    }
    return made;
  }();
  return values;
}

}  // namespace octet
