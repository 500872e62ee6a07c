#include "weights/dialects/int8_weight.h"

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "formats/text.h"

namespace octet::weights {

Int8Weight::Int8Weight(const Checkpoint& checkpoint, const std::string& module, int64_t rows,
                       int64_t k, Int8Layout layout)
    : StoredWeight(checkpoint, module, rows, k), scales_name_(std::move(layout.scales)) {
  const TensorInfo& info = find_tensor(checkpoint, layout.codes);
  check(info.dtype == DType::i8, "{}: tensor {} is {}, expected I8", checkpoint.path(),
        in_quotes(layout.codes), name_of(info.dtype));
  check_rows_shape(checkpoint, layout.codes, rows, k);
  scales_ = RowScales(checkpoint, scales_name_, rows);
  transform_ = std::move(layout.transform);
  dtype_ = layout.full_precision ? DType::bf16 : DType::i8;  // BF16 holds every code
  format_ = scales_.is_per_row() ? "INT8 row-wise" : "INT8 tensor-wise";
  if (transform_.kind == Transform::rotate)
    format_ += fmt::format(", ConvRot {}", transform_.group);
  if (transform_.kind == Transform::smooth) format_ += ", SmoothQuant";
  if (layout.full_precision) format_ += ", for floating point";
  codes_ = use(checkpoint, layout.codes);
  last_is_raw(DType::i8);
  use(checkpoint, scales_name_);
  use_present(checkpoint, layout.siblings);
}

void Int8Weight::read_stored(int64_t row, std::byte* into) const {
  const std::byte* from = codes_.data() + row * k();
  if (is_int8()) {
    std::memcpy(into, from, static_cast<size_t>(k()));
    return;
  }
  auto* values = reinterpret_cast<bf16_t*>(into);
  for (int64_t j = 0; j < k(); ++j) {
    values[j] = from_f32<bf16_t>(static_cast<float>(static_cast<int8_t>(from[j])));
  }
}

float Int8Weight::scale(int64_t row) const {
  const float scale = scales_.at(row);
  if (!std::isfinite(scale)) fail_damaged(scales_name_, row);
  return scale;
}

}  // namespace octet::weights
