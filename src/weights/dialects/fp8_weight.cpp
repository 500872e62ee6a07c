#include "weights/dialects/fp8_weight.h"

#include <array>
#include <cmath>

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

Fp8Weight::Fp8Weight(const Checkpoint& checkpoint, const std::string& module, int64_t rows,
                     int64_t k, Fp8Layout layout)
    : StoredWeight(checkpoint, module, rows, k),
      codes_name_(std::move(layout.codes)),
      scales_name_(std::move(layout.scales)) {
  const TensorInfo& info = find_tensor(checkpoint, codes_name_);
  check(info.dtype == DType::f8_e4m3, "{}: tensor {} is {}, expected F8_E4M3", checkpoint.path(),
        in_quotes(codes_name_), name_of(info.dtype));
  check_rows_shape(checkpoint, codes_name_, rows, k);
  scales_ = RowScales(checkpoint, scales_name_, rows);
  transform_ = std::move(layout.transform);
  dtype_ = DType::bf16;
  format_ = scales_.is_per_row() ? "FP8 row-wise" : "FP8 tensor-wise";
  use(checkpoint, scales_name_);
  codes_ = use(checkpoint, codes_name_);
  last_is_raw(DType::f8_e4m3);
  use_present(checkpoint, layout.siblings);
}

void Fp8Weight::read_stored(int64_t row, std::byte* into) const {
  const std::byte* from = codes_.data() + row * k();
  const std::array<bf16_t, 256>& table = bf16_of_codes();
  auto* values = reinterpret_cast<bf16_t*>(into);
  bool finite = true;
  for (int64_t j = 0; j < k(); ++j) {
    const auto code = static_cast<uint8_t>(from[j]);
    finite &= (code & 0x7f) != 0x7f;  // the format's only NaN
    values[j] = table[code];
  }
  if (!finite) fail_damaged(codes_name_, row);
}

float Fp8Weight::scale(int64_t row) const {
  const float scale = scales_.at(row);
  if (!std::isfinite(scale)) fail_damaged(scales_name_, row);
  return scale;
}

}  // namespace octet::weights
