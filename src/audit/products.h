// The sizes and types of a product, from the operands of the op that was called.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "audit/trace.h"

namespace octet::audit {

struct Product {
  int64_t m = 0, n = 0, k = 0;
  ScalarType a = ScalarType::unknown, weight = ScalarType::unknown;
  int64_t batch = 1;  // more: pairs of matrices, as in attention
};

// Of aten::mm, addmm, linear, _int_mm, _scaled_mm and of any other op whose first two matrices
// share a dimension; none where the operands were not recorded or do not fit.
std::optional<Product> product_of(std::string_view op, const Signature& signature);

// The type of the first matrix of an op that multiplies: of the activations. Also where the weight
// is packed so that its sizes fit nothing.
ScalarType activations_of(std::string_view op, const Signature& signature);

// That matrix, null where there is none.
const Operand* activations_operand(std::string_view op, const Signature& signature);
// What the types of both operands say of a product; none where they differ, or do not tell.
std::optional<WorkClass> gemm_of_types(ScalarType a, ScalarType weight);

// Elements; 0 if it is not a tensor, or has absurdly many.
int64_t elements_of(std::span<const int64_t> dims);
inline int64_t elements_of(const Operand& operand) { return elements_of(operand.dims); }

constexpr bool is_code(ScalarType type) {
  return type == ScalarType::int8 || type == ScalarType::uint8 || type == ScalarType::fp8 ||
         type == ScalarType::fp4;
}
constexpr bool is_float(ScalarType type) {
  return type == ScalarType::bf16 || type == ScalarType::f16 || type == ScalarType::f32 ||
         type == ScalarType::f64;
}

// A tensor of codes that becomes numbers, or the other way round.
struct Conversion {
  enum class Direction : uint8_t { to_numbers, to_codes };
  Direction direction = Direction::to_numbers;
  ScalarType code = ScalarType::unknown;
  int64_t codes = 0;  // elements of the tensor of codes; two or more weights each where packed
  int64_t words = 0;  // or of 32 bits each, of a kernel that widens several codes of a word
  std::vector<int64_t> dims;  // of that tensor
  bool by_table = false;      // looked up: 16 entries are of four bits, 256 of eight
  bool combined = false;      // with as many numbers, so that it may be a mask
  bool scaled = false;        // multiplied by numbers of which there are far fewer: scales
  bool of_bytes = false;      // what was unpacked has 8 bits
};

// Of copies, casts, elementwise ops and generated kernels, by the types of their operands. `wide`:
// integers of more than 8 bits are codes as well, since their bits were shifted and masked.
std::optional<Conversion> conversion_of(std::string_view op, const Signature& signature,
                                        bool wide = false);

// Whether one of the operands can be the scales of that many codes: there are far fewer. A number
// of the program itself scales what has a sign; x / 255 is a picture.
bool has_scales(const Signature& signature, ScalarType code, int64_t codes);

// The largest tensor of codes among the operands of a kernel that widens them; no codes: none.
Conversion widening_of(const Signature& signature);

// A table of the numbers that codes stand for, from which they are looked up (NF4 has 16): how many
// entries; 0: the op looks up something else.
int64_t code_book_of(std::string_view op, const Signature& signature);

// Whether a kernel's name leaves it possible that it widens codes. PyTorch's elementwise kernels
// say whether they cast, and to what; what casts float32 to bf16 or fp16 has a name of its own,
// which FP8 shares. Of what Inductor generates, names tell that something was cast.
bool may_widen(std::string_view kernel);
// PyTorch's copy with a cast, of a name that was cut short or demangled without types, or the op in
// its place.
bool casts_unknown_types(std::string_view kernel);
// Of a range: what Inductor compiled runs in it, of which a CPU's trace only has the libraries'
// calls.
bool is_compiled_code(std::string_view range);

// Whether a name of no known class leaves it possible that the kernel is a product, or dequantizes
// weights for one.
bool may_be_of_linears(std::string_view kernel);

}  // namespace octet::audit
