#include "quant/stored_rows.h"

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "formats/text.h"

namespace octet::quant {
namespace {

// Bytes in a file may lie at any address, hence memcpy.
template <class T>
float load(const std::byte* from, int64_t at) {
  T value;
  std::memcpy(&value, from + at * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return to_f32(value);
}

// Every FP8 code's value: a table is several times as fast as taking its bits apart.
const std::array<float, 256>& f8_values() {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> made{};
    for (size_t code = 0; code < made.size(); ++code) {
      made[code] = f8_e4m3_to_f32(static_cast<uint8_t>(code));
    }
    return made;
  }();
  return values;
}

float load_as_f32(DType dtype, const std::byte* from, int64_t at) {
  switch (dtype) {
    case DType::f32: return load<float>(from, at);
    case DType::bf16: return load<bf16_t>(from, at);
    case DType::f16: return load<f16_t>(from, at);
    default: return f8_values()[static_cast<uint8_t>(from[at])];
  }
}

bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16;
}

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

FileShape without_trailing_ones(FileShape shape, size_t rank) {
  while (shape.size() > rank && shape.back() == 1) shape.pop_back();
  return shape;
}

const TensorInfo& find(const Checkpoint& checkpoint, const std::string& name) {
  const TensorInfo* info = checkpoint.find(name);
  check(info != nullptr,
        "{}: tensor {} is missing; the checkpoint is incomplete or of another model",
        checkpoint.path(), in_quotes(name));
  return *info;
}

}  // namespace

StoredRows::StoredRows(const Checkpoint& checkpoint, const std::string& module, int64_t rows,
                       int64_t k)
    : path_(checkpoint.path()), name_(module + ".weight"), rows_(rows), k_(k) {
  const TensorInfo& info = find(checkpoint, name_);
  stored_ = info.dtype;
  dtype_ = is_float(stored_) ? stored_ : DType::bf16;
  bytes_ = checkpoint.bytes(name_);
  // Before the shape: types of fewer bits are packed, and have another one.
  check(is_float(stored_) || stored_ == DType::f8_e4m3,
        "{}: tensor {} is {}, expected F32, BF16, F16 or F8_E4M3; convert the checkpoint to one of "
        "these",
        path_, in_quotes(name_), octet::name_of(stored_));
  check(without_trailing_ones(info.shape, 2) == FileShape({rows, k}),
        "{}: tensor {} is {}, expected [{}, {}] by the configuration", path_, in_quotes(name_),
        to_string(info.shape), rows, k);
  if (stored_ != DType::f8_e4m3) return;
  const std::string scale_name = module + ".weight_scale";
  const TensorInfo& scale = find(checkpoint, scale_name);
  const FileShape shape = without_trailing_ones(scale.shape, 1);
  check(scale.dtype == DType::f32 && (scale.elements() == 1 || shape == FileShape({rows})),
        "{}: tensor {} is {} {}, expected F32 with one scale or {}", path_, in_quotes(scale_name),
        octet::name_of(scale.dtype), to_string(scale.shape), rows);
  scales_ = checkpoint.bytes(scale_name);
}

const std::byte* StoredRows::row_bytes(int64_t row) const {
  return bytes_.data() + row * k_ * (bits_of(stored_) / 8);
}

void StoredRows::check_finite(int64_t row, DType dtype, const std::byte* values) const {
  if (is_finite(dtype, values, k_)) return;
  fail("{}: tensor {} holds a NaN or an infinity in row {}; the checkpoint is damaged", path_,
       in_quotes(name_), row);
}

float StoredRows::scale(int64_t row) const {
  if (scales_.empty()) return 1;
  const float scale = load<float>(scales_.data(), scales_.size() > sizeof(float) ? row : 0);
  check(std::isfinite(scale),
        "{}: tensor {} holds a NaN or an infinity in row {}; the checkpoint is damaged", path_,
        in_quotes(name_ + "_scale"), row);
  return scale;
}

void StoredRows::read_unscaled(int64_t row, std::byte* into) const {
  const std::byte* from = row_bytes(row);
  if (stored_ != DType::f8_e4m3) {
    std::memcpy(into, from, static_cast<size_t>(k_ * (bits_of(stored_) / 8)));
  } else {
    const std::array<float, 256>& values = f8_values();
    auto* narrow = reinterpret_cast<bf16_t*>(into);
    for (int64_t j = 0; j < k_; ++j) {
      narrow[j] = from_f32<bf16_t>(values[static_cast<uint8_t>(from[j])]);
    }
  }
  check_finite(row, dtype_, into);
}

void StoredRows::read(int64_t row, DType to, std::byte* into) const {
  if (to == stored_) return read_unscaled(row, into);
  const std::byte* from = row_bytes(row);
  const float factor = scale(row);
  for (int64_t j = 0; j < k_; ++j) {
    const float value = load_as_f32(stored_, from, j) * factor;
    if (to == DType::bf16) {
      reinterpret_cast<bf16_t*>(into)[j] = from_f32<bf16_t>(value);
    } else {
      reinterpret_cast<float*>(into)[j] = value;
    }
  }
  check_finite(row, to, into);
}

const TensorInfo& check_vector(const Checkpoint& checkpoint, const std::string& name,
                               const FileShape& shape) {
  const TensorInfo& info = find(checkpoint, name);
  check(info.shape == shape, "{}: tensor {} is {}, expected {} by the configuration",
        checkpoint.path(), in_quotes(name), to_string(info.shape), to_string(shape));
  check(is_float(info.dtype), "{}: tensor {} is {}, expected F32, BF16 or F16", checkpoint.path(),
        in_quotes(name), octet::name_of(info.dtype));
  return info;
}

void read_vector(const Checkpoint& checkpoint, const std::string& name, const FileShape& shape,
                 float* into) {
  const TensorInfo& info = check_vector(checkpoint, name, shape);
  const std::span<const std::byte> bytes = checkpoint.bytes(name);
  const auto count = static_cast<int64_t>(info.elements());
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    into[i] = load_as_f32(info.dtype, bytes.data(), i);
    finite = finite && std::isfinite(into[i]);
  }
  check(finite, "{}: tensor {} holds a NaN or an infinity; the checkpoint is damaged",
        checkpoint.path(), in_quotes(name));
}

}  // namespace octet::quant
