// One linear's weight as a checkpoint stores it, whatever the dialect: the common description.
//
// A row is `scale(row)` times the values that the file holds, in the space of the weight's
// transform. For INT8 these values are the codes that the tensor cores multiply, and nothing is
// converted; any other weight is a source to be quantized or to be used in floating point.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/checkpoint.h"
#include "tensor/quantized.h"

namespace octet::weights {

// An ActivationTransform that owns its numbers.
struct StoredTransform {
  Transform kind = Transform::none;
  std::vector<float> smooth;  // activations are multiplied by it, [k]
  int64_t group = 0;          // of a rotation

  bool operator==(const StoredTransform&) const = default;
  ActivationTransform view() const;  // looks at `smooth`
  // The transform is undone in place: values [k] of a stored row become those of the weight.
  void undo(float* row, int64_t k) const;
  // And done: those of the weight become what is stored.
  void apply(float* row, int64_t k) const;
};

// Tensors that one weight is made of: for the fingerprint, and to know what is left over.
struct UsedTensor {
  std::string name;
  std::span<const std::byte> bytes;
  const TensorFile* file = nullptr;  // that the bytes are in, if any

  void copy(size_t first, size_t count, std::byte* into) const;
};

// Rows as they lie in a file, dense and one behind the other: converted to F32, each times
// scale(row) is the row of the weight, in the space of its transform.
struct RawRows {
  DType dtype = DType::f32;  // I8, F8_E4M3, F16, BF16 or F32
  size_t tensor = 0;         // that holds them and nothing else, among tensors()
};

// Scales of a weight: F32, BF16 or F16, one for all rows or one per row ([rows] or [rows, 1]).
// Zero and negative ones are numbers like any other: a row of zeros, and a row turned around.
class RowScales {
 public:
  RowScales() = default;  // 1 for every row
  // Throws Error, naming file and tensor, for another type or shape.
  RowScales(const Checkpoint& checkpoint, const std::string& name, int64_t rows);

  const std::string& name() const { return name_; }  // of the tensor
  bool is_per_row() const { return per_row_; }
  float at(int64_t row) const;  // may be a NaN or an infinity

 private:
  std::string name_;
  DType dtype_ = DType::f32;
  bool per_row_ = false;
  std::span<const std::byte> bytes_;
};

class StoredWeight {
 public:
  virtual ~StoredWeight() = default;
  StoredWeight(const StoredWeight&) = delete;
  StoredWeight& operator=(const StoredWeight&) = delete;

  const std::string& path() const { return path_; }      // of the checkpoint, for messages
  const std::string& module() const { return module_; }  // "layers.0.attention.qkv", with prefix
  int64_t rows() const { return rows_; }
  int64_t k() const { return k_; }
  // For people: "BF16", "FP8 row-wise", "INT8 row-wise, ConvRot 256", "NF4".
  const std::string& format() const { return format_; }
  // Of the values that read_stored() gives: I8 for INT8 codes, else F32, BF16 or F16.
  DType dtype() const { return dtype_; }
  bool is_int8() const { return dtype_ == DType::i8; }
  // Meant for the integer units: INT8 codes, or such that were changed since (a LoRA was merged)
  // and are to become INT8 again, under the same transform.
  bool for_int8() const { return for_int8_ || is_int8(); }
  const StoredTransform& transform() const { return transform_; }
  bool is_scaled_per_row() const { return scales_.is_per_row(); }  // or scale() is one for all
  const std::vector<UsedTensor>& tensors() const { return tensors_; }
  // Where the rows can be had without read_stored(), which also says whether they are finite.
  const std::optional<RawRows>& raw() const { return raw_; }
  uint64_t bytes() const;  // of all its tensors
  // Throws Error when one of its files became shorter: to be asked after reading, before what was
  // read is used.
  void check_intact() const;
  // The same, and gives the memory of the pages that it was read from back to the system.
  void finish_reading() const;

  // k values of dtype() that times scale(row) are the row, without loss. Throws Error when one is a
  // NaN or an infinity.
  virtual void read_stored(int64_t row, std::byte* into) const = 0;
  // Throws Error when it is a NaN or an infinity.
  virtual float scale(int64_t row) const;

  // The weight itself, transform undone, as F32 or BF16. Throws Error when a value is, or becomes,
  // a NaN or an infinity.
  void read(int64_t row, DType to, std::byte* into) const;
  void read(int64_t row, float* into) const;

 protected:
  StoredWeight(std::string path, std::string module, int64_t rows, int64_t k);
  StoredWeight(const Checkpoint& checkpoint, std::string module, int64_t rows, int64_t k)
      : StoredWeight(checkpoint.path(), std::move(module), rows, k) {}

  // Takes a tensor of the checkpoint into tensors(); its bytes. Throws Error when it is packed in
  // other blocks than these: its bytes are not what its type and shape say.
  std::span<const std::byte> use(const Checkpoint& checkpoint, const std::string& name,
                                 std::string_view packing = "");
  // The same for those of these names that the checkpoint has.
  void use_present(const Checkpoint& checkpoint, std::span<const std::string> names);
  // The same for tensors of others: those of a weight that this one is made from, and bytes that
  // live as long as this object does.
  void use(const StoredWeight& other);
  void use(UsedTensor tensor) { tensors_.push_back(std::move(tensor)); }
  // The tensor that was used last is raw().
  void last_is_raw(DType dtype) { raw_ = {dtype, tensors_.size() - 1}; }
  [[noreturn]] void fail_damaged(const std::string& tensor, int64_t row) const;

  std::string format_;
  DType dtype_ = DType::f32;
  bool for_int8_ = false;
  StoredTransform transform_;
  RowScales scales_;

 private:
  std::string path_, module_;
  int64_t rows_, k_;
  std::vector<UsedTensor> tensors_;
  std::optional<RawRows> raw_;
};

// --- what dialects share ---

// The tensor, or an Error that names file and tensor.
const TensorInfo& find_tensor(const Checkpoint& checkpoint, const std::string& name);
// Throws Error unless the shape is [rows, k]; trailing extents of 1 do not count.
void check_rows_shape(const Checkpoint& checkpoint, const std::string& name, int64_t rows,
                      int64_t k);
// Value `at` of F32, BF16, F16 or F8_E4M3 bytes, which may lie at any address.
float load_as_f32(DType dtype, const std::byte* from, int64_t at);
// And the other way: as F32, BF16 or F16, rounded.
void store_f32(float value, DType dtype, std::byte* into, int64_t at);
void store_f32(std::span<const float> values, DType dtype, std::byte* into);
// Whether all values are finite, and stay so when they are rounded to `to`. Integers are.
bool all_finite(std::span<const std::byte> values, DType dtype, DType to);
bool is_plain_float(DType dtype);  // F32, BF16 or F16

// A tensor of this shape as F32, from F32, BF16 or F16. Throws Error, naming file and tensor, where
// it is missing, of another shape or type, or holds a NaN or infinity.
void read_vector(const Checkpoint& checkpoint, const std::string& name, const FileShape& shape,
                 float* into);
// A vector that activations are multiplied by before they meet the weight, [k] or [1, k], as a
// transform. Throws Error as read_vector() does, and for a zero, which could not be undone.
StoredTransform read_smooth(const Checkpoint& checkpoint, const std::string& name, int64_t k);
// read_vector() for what can be known without reading its numbers.
const TensorInfo& check_vector(const Checkpoint& checkpoint, const std::string& name,
                               const FileShape& shape);

}  // namespace octet::weights
