#include "weights/dialects/nvfp4_weight.h"

#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "formats/text.h"

namespace octet::weights {
namespace {

constexpr int64_t kScaledInputs = 16;  // inputs that share a scale
constexpr float kE2m1[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                             -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

// Where the scale of a row's block lies: tiles of 128 rows and 4 blocks, in which rows that are 32
// apart stand together.
int64_t swizzled(int64_t row, int64_t block, int64_t blocks_per_row) {
  const int64_t tiles_across = ceil_div(blocks_per_row, 4);
  return ((row / 128) * tiles_across + block / 4) * 512 + (row % 32) * 16 + ((row % 128) / 32) * 4 +
         block % 4;
}

}  // namespace

Nvfp4Weight::Nvfp4Weight(const Checkpoint& checkpoint, const std::string& module, int64_t rows,
                         int64_t k, std::span<const std::string> siblings,
                         StoredTransform transform)
    : StoredWeight(checkpoint, module, rows, k),
      block_scales_name_(module + ".weight_scale"),
      scale_name_(module + ".weight_scale_2") {
  const std::string codes = module + ".weight";
  const TensorInfo& info = find_tensor(checkpoint, codes);
  // Writers pad both extents to multiples of 16; where that changes nothing, the two are the same.
  const int64_t padded_rows = round_up(rows, kScaledInputs), padded_k = round_up(k, kScaledInputs);
  const bool whole = k % kScaledInputs == 0 && info.shape == FileShape({rows, k / 2});
  const bool padded = info.shape == FileShape({padded_rows, padded_k / 2});
  check(info.dtype == DType::u8 && (whole || padded),
        "{}: tensor {} is {} {}, expected U8 [{}, {}] for NVFP4", checkpoint.path(),
        in_quotes(codes), name_of(info.dtype), to_string(info.shape), padded_rows, padded_k / 2);
  row_bytes_ = padded_k / 2;
  const TensorInfo& scales = find_tensor(checkpoint, block_scales_name_);
  const FileShape expected = {round_up(rows, 128), round_up(padded_k / kScaledInputs, 4)};
  check((scales.dtype == DType::f8_e4m3 || scales.dtype == DType::u8) && scales.shape == expected,
        "{}: tensor {} is {} {}, expected F8_E4M3 {} for NVFP4", checkpoint.path(),
        in_quotes(block_scales_name_), name_of(scales.dtype), to_string(scales.shape),
        to_string(expected));
  scale_ = RowScales(checkpoint, scale_name_, rows);
  check(!scale_.is_per_row(), "{}: tensor {} has {} scales, expected one", checkpoint.path(),
        in_quotes(scale_name_), rows);
  transform_ = std::move(transform);
  dtype_ = DType::bf16;  // a code of 2 bits times a scale of 4 has 6: nothing is lost
  format_ = "NVFP4";
  codes_ = use(checkpoint, codes);
  block_scales_ = use(checkpoint, block_scales_name_);
  use(checkpoint, scale_name_);
  use_present(checkpoint, siblings);
}

void Nvfp4Weight::read_stored(int64_t row, std::byte* into) const {
  const std::byte* from = codes_.data() + row * row_bytes_;
  auto* values = reinterpret_cast<bf16_t*>(into);
  const int64_t blocks = ceil_div(k(), kScaledInputs);
  bool finite = true;
  for (int64_t block = 0; block < blocks; ++block) {
    const float factor =
        load_as_f32(DType::f8_e4m3, block_scales_.data(), swizzled(row, block, blocks));
    finite = finite && std::isfinite(factor);
    bf16_t products[16];
    for (size_t code = 0; code < 16; ++code)
      products[code] = from_f32<bf16_t>(kE2m1[code] * factor);
    const int64_t begin = block * kScaledInputs, end = std::min(k(), begin + kScaledInputs);
    for (int64_t j = begin; j + 1 < end; j += 2) {
      const auto pair = static_cast<uint8_t>(from[j / 2]);
      values[j] = products[pair >> 4];
      values[j + 1] = products[pair & 15];
    }
    if ((end - begin) % 2 != 0) {
      values[end - 1] = products[static_cast<uint8_t>(from[end / 2]) >> 4];
    }
  }
  if (!finite) fail_damaged(block_scales_name_, row);
}

float Nvfp4Weight::scale(int64_t row) const {
  const float scale = scale_.at(row);
  if (!std::isfinite(scale)) fail_damaged(scale_name_, row);
  return scale;
}

}  // namespace octet::weights
