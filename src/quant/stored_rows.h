// Rows of a weight as a checkpoint stores them: F32, BF16 or F16 as they are, or FP8 (E4M3) with a
// scale per row or one for all in <module>.weight_scale.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "formats/checkpoint.h"

namespace octet::quant {

class StoredRows {
 public:
  // Throws Error, naming file and tensor, when `<module>.weight` is missing, is not [rows, k]
  // (trailing extents of 1 do not count) or has a type that is not read here.
  StoredRows(const Checkpoint& checkpoint, const std::string& module, int64_t rows, int64_t k);

  const std::string& name() const { return name_; }
  int64_t rows() const { return rows_; }
  int64_t k() const { return k_; }
  // The type of stored values without loss: that of the file, BF16 for FP8.
  DType dtype() const { return dtype_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::span<const std::byte> scale_bytes() const { return scales_; }  // empty without scales

  // Row `row` as `to`, F32 or BF16. Throws Error when it holds a NaN or an infinity.
  void read(int64_t row, DType to, std::byte* into) const;
  // The same without loss: values of dtype(), which times scale(row) are the row. (Codes of INT8
  // do not depend on the scale of a row, so that nothing need be rounded before they are made.)
  void read_unscaled(int64_t row, std::byte* into) const;
  float scale(int64_t row) const;  // throws Error when it is a NaN or an infinity

 private:
  const std::byte* row_bytes(int64_t row) const;
  void check_finite(int64_t row, DType dtype, const std::byte* values) const;

  std::string path_, name_;
  int64_t rows_, k_;
  DType stored_, dtype_;
  std::span<const std::byte> bytes_;
  std::span<const std::byte> scales_;  // F32, one or one per row; empty without
};

// A tensor of this shape as F32, from F32, BF16 or F16. Throws Error, naming file and tensor, where
// it is missing, of another shape or type, or holds a NaN or infinity.
void read_vector(const Checkpoint& checkpoint, const std::string& name, const FileShape& shape,
                 float* into);
// The same for what can be known without reading its numbers.
const TensorInfo& check_vector(const Checkpoint& checkpoint, const std::string& name,
                               const FileShape& shape);

}  // namespace octet::quant
