#include "weights/stored_weight.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/error.h"
#include "base/per_thread.h"
#include "formats/text.h"

namespace octet::weights {
namespace {

template <class T>
float load(const std::byte* from, int64_t at) {
  T value;
  std::memcpy(&value, from + at * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return to_f32(value);
}

// The regular Hadamard rotation of consecutive groups of 4^n values: symmetric, and its own
// inverse. One pass per base-4 digit of the index, each of which halves: no square root is needed.
void rotate_groups(float* row, int64_t k, int64_t group) {
  for (int64_t stride = 1; stride < group; stride *= 4) {
    for (int64_t begin = 0; begin < k; begin += 4 * stride) {
      for (int64_t i = begin; i < begin + stride; ++i) {
        float *a = row + i, *b = a + stride, *c = b + stride, *d = c + stride;
        const float half = ((*a + *b) + (*c + *d)) * 0.5f;
        const float was_a = *a, was_b = *b;
        *a = half - *d;
        *b = half - *c;
        *c = half - was_b;
        *d = half - was_a;
      }
    }
  }
}

// Loops over a row, without a branch within: each is bound by memory then.
template <class T>
void widen(const std::byte* from, int64_t k, float factor, float* into) {
  const auto* values = reinterpret_cast<const T*>(from);
  for (int64_t j = 0; j < k; ++j) {
    if constexpr (std::is_same_v<T, int8_t>) {
      into[j] = static_cast<float>(values[j]) * factor;
    } else {
      into[j] = to_f32(values[j]) * factor;
    }
  }
}

// How to see numbers that are not finite, several at once: a number's magnitude, or its exponent
// alone, plus `step` reaches the sign's bit exactly then. Nothing is carried from one to the next.
struct FiniteTest {
  uint64_t mask, step, sign;
};

// `to`: what the numbers will be rounded to. Of F32 some that are finite become infinite in BF16.
FiniteTest finite_test(DType dtype, DType to) {
  const auto in_all = [](uint64_t lane, int bits) {
    uint64_t all = 0;
    for (int at = 0; at < 64; at += bits) all |= lane << at;
    return all;
  };
  switch (dtype) {
    case DType::f8_e4m3: return {in_all(0x7f, 8), in_all(0x01, 8), in_all(0x80, 8)};
    case DType::bf16: return {in_all(0x7f80, 16), in_all(0x0080, 16), in_all(0x8000, 16)};
    case DType::f16: return {in_all(0x7c00, 16), in_all(0x0400, 16), in_all(0x8000, 16)};
    case DType::f32:
      if (to == DType::bf16) {  // from 0x7f7f8000 on
        return {in_all(0x7fffffff, 32), in_all(0x00808000, 32), in_all(0x80000000, 32)};
      }
      return {in_all(0x7f800000, 32), in_all(0x00800000, 32), in_all(0x80000000, 32)};
    default: return {0, 0, 0};  // integers
  }
}

FileShape without_trailing_ones(FileShape shape, size_t rank) {
  while (shape.size() > rank && shape.back() == 1) shape.pop_back();
  return shape;
}

}  // namespace

// --- transforms ---

ActivationTransform StoredTransform::view() const {
  ActivationTransform made{.kind = kind, .group = group};
  if (kind == Transform::smooth) {
    made.smooth = ConstTensorView(reinterpret_cast<const std::byte*>(smooth.data()), DType::f32,
                                  {static_cast<int64_t>(smooth.size())});
  }
  return made;
}

void StoredTransform::undo(float* row, int64_t k) const {
  if (kind == Transform::rotate) rotate_groups(row, k, group);
  if (kind != Transform::smooth) return;
  for (int64_t j = 0; j < k; ++j) row[j] *= smooth[static_cast<size_t>(j)];
}

void StoredTransform::apply(float* row, int64_t k) const {
  if (kind == Transform::rotate) rotate_groups(row, k, group);
  if (kind != Transform::smooth) return;
  for (int64_t j = 0; j < k; ++j) row[j] /= smooth[static_cast<size_t>(j)];
}

// --- weights ---

void UsedTensor::copy(size_t first, size_t count, std::byte* into) const {
  const std::span<const std::byte> part = bytes.subspan(first, count);
  if (file != nullptr) {
    file->copy(part, into);
  } else if (count > 0) {
    std::memcpy(into, part.data(), count);
  }
}

StoredWeight::StoredWeight(std::string path, std::string module, int64_t rows, int64_t k)
    : path_(std::move(path)), module_(std::move(module)), rows_(rows), k_(k) {}

std::span<const std::byte> StoredWeight::use(const Checkpoint& checkpoint, const std::string& name,
                                             std::string_view packing) {
  const TensorInfo& info = find_tensor(checkpoint, name);
  check(info.packing == packing, "{}: tensor {} is packed as {}, which is not read here",
        checkpoint.path(), Quoted{name}, info.packing);
  const std::span<const std::byte> bytes = checkpoint.bytes(name);
  tensors_.push_back({name, bytes, &checkpoint.file_of(name)});
  return bytes;
}

void StoredWeight::use_present(const Checkpoint& checkpoint, std::span<const std::string> names) {
  for (const std::string& name : names) {
    if (checkpoint.find(name) != nullptr) use(checkpoint, name);
  }
}

void StoredWeight::use(const StoredWeight& other) {
  tensors_.insert(tensors_.end(), other.tensors_.begin(), other.tensors_.end());
}

uint64_t StoredWeight::bytes() const {
  uint64_t sum = 0;
  for (const UsedTensor& tensor : tensors_) sum += tensor.bytes.size();
  return sum;
}

void StoredWeight::check_intact() const {
  for (const UsedTensor& tensor : tensors_) {
    if (tensor.file != nullptr) tensor.file->check_intact();
  }
}

void StoredWeight::finish_reading() const {
  check_intact();
  for (const UsedTensor& tensor : tensors_) {
    if (tensor.file != nullptr) tensor.file->release(tensor.bytes);
  }
}

void StoredWeight::fail_damaged(const std::string& tensor, int64_t row) const {
  fail("{}: tensor {} holds a NaN or an infinity in row {}; the checkpoint is damaged", path_,
       in_quotes(tensor), row);
}

float StoredWeight::scale(int64_t row) const {
  const float scale = scales_.at(row);
  if (!std::isfinite(scale)) fail_damaged(scales_.name(), row);
  return scale;
}

void StoredWeight::read(int64_t row, float* into) const {
  const float factor = scale(row);
  if (dtype_ == DType::f32) {
    read_stored(row, reinterpret_cast<std::byte*>(into));
    for (int64_t j = 0; j < k_; ++j) into[j] *= factor;
  } else {
    // Of this thread. F32 does without, for a weight of F32 may read another one meanwhile.
    static PerThread<std::vector<std::byte>> stored_by_thread;
    std::vector<std::byte>& stored = stored_by_thread.get();
    stored.resize(static_cast<size_t>(k_ * (bits_of(dtype_) / 8)));
    read_stored(row, stored.data());
    switch (dtype_) {
      case DType::i8: widen<int8_t>(stored.data(), k_, factor, into); break;
      case DType::bf16: widen<bf16_t>(stored.data(), k_, factor, into); break;
      default: widen<f16_t>(stored.data(), k_, factor, into);
    }
  }
  transform_.undo(into, k_);
  const std::span values(into, static_cast<size_t>(k_));
  if (!all_finite(std::as_bytes(values), DType::f32, DType::f32)) {
    fail_damaged(module_ + ".weight", row);
  }
}

void StoredWeight::read(int64_t row, DType to, std::byte* into) const {
  if (to == DType::f32) return read(row, reinterpret_cast<float*>(into));
  // As it is, where nothing would change.
  if (to == dtype_ && transform_.kind == Transform::none && scale(row) == 1) {
    return read_stored(row, into);
  }
  static PerThread<std::vector<float>> wide_by_thread;
  std::vector<float>& wide = wide_by_thread.get();
  wide.resize(static_cast<size_t>(k_));
  read(row, wide.data());
  auto* narrow = reinterpret_cast<bf16_t*>(into);
  bool finite = true;
  for (int64_t j = 0; j < k_; ++j) {
    narrow[j] = from_f32<bf16_t>(wide[static_cast<size_t>(j)]);
    finite &= (narrow[j].bits & 0x7f80) != 0x7f80;
  }
  if (!finite) fail_damaged(module_ + ".weight", row);
}

// --- scales ---

RowScales::RowScales(const Checkpoint& checkpoint, const std::string& name, int64_t rows)
    : name_(name) {
  const TensorInfo& info = find_tensor(checkpoint, name);
  const bool one = info.elements() == 1;
  per_row_ = !one && without_trailing_ones(info.shape, 1) == FileShape({rows});
  check(is_plain_float(info.dtype) && (one || per_row_),
        "{}: tensor {} is {} {}, expected F32, BF16 or F16 with one scale or {}", checkpoint.path(),
        Quoted{name}, name_of(info.dtype), to_string(info.shape), rows);
  dtype_ = info.dtype;
  bytes_ = checkpoint.bytes(name);
}

float RowScales::at(int64_t row) const {
  return bytes_.empty() ? 1 : load_as_f32(dtype_, bytes_.data(), per_row_ ? row : 0);
}

// --- what dialects share ---

float load_as_f32(DType dtype, const std::byte* from, int64_t at) {
  switch (dtype) {
    case DType::f32: return load<float>(from, at);
    case DType::bf16: return load<bf16_t>(from, at);
    case DType::f16: return load<f16_t>(from, at);
    default: return f8_e4m3_values()[static_cast<uint8_t>(from[at])];
  }
}

void store_f32(float value, DType dtype, std::byte* into, int64_t at) {
  switch (dtype) {
    case DType::f32: reinterpret_cast<float*>(into)[at] = value; break;
    case DType::f16: reinterpret_cast<f16_t*>(into)[at] = from_f32<f16_t>(value); break;
    default: reinterpret_cast<bf16_t*>(into)[at] = from_f32<bf16_t>(value); break;
  }
}

void store_f32(std::span<const float> values, DType dtype, std::byte* into) {
  for (size_t i = 0; i < values.size(); ++i) {
    store_f32(values[i], dtype, into, static_cast<int64_t>(i));
  }
}

bool all_finite(std::span<const std::byte> values, DType dtype, DType to) {
  const FiniteTest test = finite_test(dtype, to);
  uint64_t found = 0;
  size_t at = 0;
  for (; at + 8 <= values.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, values.data() + at, 8);
    found |= (word & test.mask) + test.step;
  }
  if (at < values.size()) {
    uint64_t word = 0;
    std::memcpy(&word, values.data() + at, values.size() - at);
    found |= (word & test.mask) + test.step;
  }
  return (found & test.sign) == 0;
}

bool is_plain_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16;
}

const TensorInfo& find_tensor(const Checkpoint& checkpoint, const std::string& name) {
  const TensorInfo* info = checkpoint.find(name);
  check(info != nullptr,
        "{}: tensor {} is missing; the checkpoint is incomplete or of another model",
        checkpoint.path(), Quoted{name});
  return *info;
}

void check_rows_shape(const Checkpoint& checkpoint, const std::string& name, int64_t rows,
                      int64_t k) {
  const TensorInfo& info = find_tensor(checkpoint, name);
  check(without_trailing_ones(info.shape, 2) == FileShape({rows, k}),
        "{}: tensor {} is {}, expected [{}, {}] by the configuration", checkpoint.path(),
        Quoted{name}, to_string(info.shape), rows, k);
}

const TensorInfo& check_vector(const Checkpoint& checkpoint, const std::string& name,
                               const FileShape& shape) {
  const TensorInfo& info = find_tensor(checkpoint, name);
  check(info.shape == shape, "{}: tensor {} is {}, expected {} by the configuration",
        checkpoint.path(), Quoted{name}, to_string(info.shape), to_string(shape));
  check(is_plain_float(info.dtype), "{}: tensor {} is {}, expected F32, BF16 or F16",
        checkpoint.path(), Quoted{name}, name_of(info.dtype));
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
  checkpoint.file_of(name).check_intact();
  check(finite, "{}: tensor {} holds a NaN or an infinity; the checkpoint is damaged",
        checkpoint.path(), Quoted{name});
}

StoredTransform read_smooth(const Checkpoint& checkpoint, const std::string& name, int64_t k) {
  StoredTransform made{.kind = Transform::smooth, .smooth = {}};
  made.smooth.resize(static_cast<size_t>(k));
  const bool is_row = find_tensor(checkpoint, name).shape == FileShape({1, k});
  read_vector(checkpoint, name, is_row ? FileShape({1, k}) : FileShape({k}), made.smooth.data());
  const auto zero = std::ranges::find(made.smooth, 0.0f);
  check(
      zero == made.smooth.end(),
      "{}: tensor {} holds a zero for input channel {}, which could not be undone; the checkpoint "
      "is damaged",
      checkpoint.path(), Quoted{name}, zero - made.smooth.begin());
  return made;
}

}  // namespace octet::weights
