// <module>.weight as F32, BF16 or F16: what is left when no other dialect claims a module.
#include <cstring>

#include "base/error.h"
#include "formats/text.h"
#include "weights/dialect.h"

namespace octet::weights {
namespace {

// NaN or infinity: all bits of the exponent are set.
template <class Bits>
bool has_non_finite(const std::byte* from, int64_t count, Bits exponent) {
  bool found = false;
  for (int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, from + i * static_cast<int64_t>(sizeof(Bits)), sizeof(Bits));
    found |= (bits & exponent) == exponent;
  }
  return found;
}

bool is_finite(DType dtype, const std::byte* from, int64_t count) {
  switch (dtype) {
    case DType::f32: return !has_non_finite<uint32_t>(from, count, 0x7f800000u);
    case DType::bf16: return !has_non_finite<uint16_t>(from, count, 0x7f80);
    default: return !has_non_finite<uint16_t>(from, count, 0x7c00);
  }
}

class PlainWeight : public StoredWeight {
 public:
  PlainWeight(const Checkpoint& checkpoint, const std::string& module, int64_t rows, int64_t k)
      : StoredWeight(checkpoint, module, rows, k), name_(module + ".weight") {
    const TensorInfo& info = find_tensor(checkpoint, name_);
    // Before the shape: types of fewer bits are packed, and have another one.
    check(is_plain_float(info.dtype),
          "{}: tensor {} is {} without what would say how to read it; expected F32, BF16 or F16, "
          "or one of the dialects that the documentation lists",
          checkpoint.path(), in_quotes(name_), name_of(info.dtype));
    check_rows_shape(checkpoint, name_, rows, k);
    dtype_ = info.dtype;
    format_ = name_of(info.dtype);
    bytes_ = use(checkpoint, name_);
    last_is_raw(dtype_);
  }

  void read_stored(int64_t row, std::byte* into) const override {
    const int64_t row_bytes = k() * (bits_of(dtype()) / 8);
    std::memcpy(into, bytes_.data() + row * row_bytes, static_cast<size_t>(row_bytes));
    if (!is_finite(dtype(), into, k())) fail_damaged(name_, row);
  }

 private:
  std::string name_;
  std::span<const std::byte> bytes_;
};

bool stores_plain(const Checkpoint& checkpoint, const std::string& module) {
  return checkpoint.find(module + ".weight") != nullptr;
}

std::unique_ptr<StoredWeight> open_plain(const Checkpoint& checkpoint, const std::string& module,
                                         int64_t rows, int64_t k) {
  return std::make_unique<PlainWeight>(checkpoint, module, rows, k);
}

}  // namespace

const Dialect kPlainDialect = {"plain", "floating point: BF16, F16 or F32", stores_plain,
                               open_plain};

}  // namespace octet::weights
