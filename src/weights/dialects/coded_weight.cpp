#include "weights/dialects/coded_weight.h"

#include <array>
#include <cstring>

#include "base/error.h"
#include "formats/text.h"

namespace octet::weights {
namespace {

// Every code in BF16, which holds them all.
const std::array<bf16_t, 256>& bf16_of_codes() {
  static const std::array<bf16_t, 256> values = [] {
    std::array<bf16_t, 256> made{};
    for (size_t code = 0; code < made.size(); ++code) {
      made[code] = from_f32<bf16_t>(f8_e4m3_to_f32(static_cast<uint8_t>(code)));
    }
    return made;
  }();
  return values;
}

}  // namespace

CodedWeight::CodedWeight(const Checkpoint& checkpoint, const std::string& module, int64_t rows,
                         int64_t k, DType type, CodedLayout layout)
    : StoredWeight(checkpoint, module, rows, k), type_(type), codes_name_(std::move(layout.codes)) {
  const TensorInfo& info = find_tensor(checkpoint, codes_name_);
  check(info.dtype == type, "{}: tensor {} is {}, expected {}", checkpoint.path(),
        Quoted{codes_name_}, name_of(info.dtype), name_of(type));
  check_rows_shape(checkpoint, codes_name_, rows, k);
  scales_ = RowScales(checkpoint, layout.scales, rows);
  transform_ = std::move(layout.transform);
  const bool is_native = type == DType::i8 && !layout.full_precision;
  dtype_ = is_native ? DType::i8 : DType::bf16;  // BF16 holds every code
  format_ = fmt::format("{} {}", type == DType::i8 ? "INT8" : "FP8",
                        scales_.is_per_row() ? "row-wise" : "tensor-wise");
  if (type == DType::i8) {
    if (transform_.kind == Transform::rotate) {
      format_ += fmt::format(", ConvRot {}", transform_.group);
    }
    if (transform_.kind == Transform::smooth) format_ += ", SmoothQuant";
    if (layout.full_precision) format_ += ", for floating point";
  }
  codes_ = use(checkpoint, codes_name_);
  last_is_raw(type);
  use(checkpoint, layout.scales);
  use_present(checkpoint, layout.siblings);
}

void CodedWeight::read_stored(int64_t row, std::byte* into) const {
  const std::byte* from = codes_.data() + row * k();
  if (is_int8()) {
    std::memcpy(into, from, static_cast<size_t>(k()));
    return;
  }
  auto* values = reinterpret_cast<bf16_t*>(into);
  if (type_ == DType::i8) {
    for (int64_t j = 0; j < k(); ++j) {
      values[j] = from_f32<bf16_t>(static_cast<float>(static_cast<int8_t>(from[j])));
    }
    return;
  }
  const std::array<bf16_t, 256>& table = bf16_of_codes();
  bool finite = true;
  for (int64_t j = 0; j < k(); ++j) {
    const auto code = static_cast<uint8_t>(from[j]);
    finite &= (code & 0x7f) != 0x7f;  // the format's only NaN
    values[j] = table[code];
  }
  if (!finite) fail_damaged(codes_name_, row);
}

}  // namespace octet::weights
