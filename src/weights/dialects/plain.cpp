// <module>.weight as F32, BF16 or F16: what is left when no other dialect claims a module.
#include <cstring>

#include "base/error.h"
#include "formats/text.h"
#include "weights/dialect.h"

namespace octet::weights {
namespace {

class PlainWeight : public StoredWeight {
 public:
  PlainWeight(const Checkpoint& checkpoint, const std::string& module, int64_t rows, int64_t k)
      : StoredWeight(checkpoint, module, rows, k), name_(module + ".weight") {
    const TensorInfo& info = find_tensor(checkpoint, name_);
    // Before the shape: types of fewer bits are packed, and have another one.
    check(is_plain_float(info.dtype),
          "{}: tensor {} is {} without what would say how to read it; expected F32, BF16 or F16, "
          "or one of the dialects that the documentation lists",
          checkpoint.path(), Quoted{name_}, name_of(info.dtype));
    check_rows_shape(checkpoint, name_, rows, k);
    dtype_ = info.dtype;
    format_ = name_of(info.dtype);
    bytes_ = use(checkpoint, name_);
    last_is_raw(dtype_);
  }

  void read_stored(int64_t row, std::byte* into) const override {
    const auto row_bytes = static_cast<size_t>(k() * (bits_of(dtype()) / 8));
    std::memcpy(into, bytes_.data() + static_cast<size_t>(row) * row_bytes, row_bytes);
    if (!all_finite({into, row_bytes}, dtype(), dtype())) fail_damaged(name_, row);
  }

 private:
  std::string name_;
  std::span<const std::byte> bytes_;
};

bool stores_plain(const Checkpoint& checkpoint, const std::string& module) {
  return checkpoint.find(module + ".weight") != nullptr;
}

}  // namespace

const Dialect kPlainDialect = {"plain", "floating point: BF16, F16 or F32", stores_plain,
                               open_as<PlainWeight>};

}  // namespace octet::weights
