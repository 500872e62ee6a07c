// <module>.weight in FP8 (E4M3) with <module>.weight_scale, per row as the official files have it,
// or one for all.
#include <cmath>

#include "formats/text.h"
#include "quant/dialect.h"

namespace octet::quant {
namespace {

class ScaledFp8Weight : public StoredWeight {
 public:
  ScaledFp8Weight(const Checkpoint& checkpoint, const std::string& module, int64_t rows, int64_t k)
      : StoredWeight(checkpoint, module, rows, k),
        name_(module + ".weight"),
        scale_name_(module + ".weight_scale") {
    check_rows_shape(checkpoint, name_, rows, k);
    scales_ = RowScales(checkpoint, scale_name_, rows);
    dtype_ = DType::bf16;  // holds every FP8 value
    format_ = scales_.is_per_row() ? "FP8 row-wise" : "FP8 tensor-wise";
    use(checkpoint, scale_name_);
    codes_ = use(checkpoint, name_);
  }

  void read_stored(int64_t row, std::byte* into) const override {
    const std::byte* from = codes_.data() + row * k();
    auto* values = reinterpret_cast<bf16_t*>(into);
    bool finite = true;
    for (int64_t j = 0; j < k(); ++j) {
      finite &= (static_cast<uint8_t>(from[j]) & 0x7f) != 0x7f;  // the format's only NaN
      values[j] = from_f32<bf16_t>(load_as_f32(DType::f8_e4m3, from, j));
    }
    if (!finite) fail_damaged(name_, row);
  }

  float scale(int64_t row) const override {
    const float scale = scales_.at(row);
    if (!std::isfinite(scale)) fail_damaged(scale_name_, row);
    return scale;
  }

 private:
  std::string name_, scale_name_;
  std::span<const std::byte> codes_;
  RowScales scales_;
};

bool stores(const Checkpoint& checkpoint, const std::string& module) {
  const TensorInfo* weight = checkpoint.find(module + ".weight");
  return weight != nullptr && weight->dtype == DType::f8_e4m3;
}

std::unique_ptr<StoredWeight> open(const Checkpoint& checkpoint, const std::string& module,
                                   int64_t rows, int64_t k) {
  return std::make_unique<ScaledFp8Weight>(checkpoint, module, rows, k);
}

}  // namespace

const Dialect kScaledFp8Dialect = {"fp8", "FP8 with a scale per row or one for all", stores, open};

}  // namespace octet::quant
