// Rows of one module to be written, wherever they come from: one stored weight, or a part of
// several that follow one another (a fused qkv of three).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/thread_pool.h"
#include "weights/stored_weight.h"

namespace octet::quant {

class WeightRows {
 public:
  // Rows [first, first + rows) of the weights in their order, which must outlive this object.
  WeightRows(std::span<const std::unique_ptr<weights::StoredWeight>> weights, int64_t first,
             int64_t rows);

  int64_t rows() const { return rows_; }
  int64_t k() const { return k_; }
  // Of the values of read(): that of the files where all agree, else F32.
  DType dtype() const { return dtype_; }
  // Values that times scale(row) are the row, without loss.
  void read(int64_t row, std::byte* into) const;
  float scale(int64_t row) const;
  // The row itself as F32, BF16 or F16; its columns times `columns` [k], if there are any, and the
  // whole over `divisor`.
  void read_as(int64_t row, DType dtype, const std::vector<float>* columns, float divisor,
               std::byte* into) const;
  void check_intact() const;  // see weights::StoredWeight
  // Bytes of the files that the rows take, about.
  uint64_t bytes() const;

 private:
  struct Place {
    const weights::StoredWeight* weight;
    int64_t row;
  };
  Place find(int64_t row) const;

  std::span<const std::unique_ptr<weights::StoredWeight>> weights_;
  int64_t first_, rows_, k_ = 0;
  DType dtype_ = DType::f32;
  bool stored_ = true;  // values are read as they are stored
};

// How much memory a pass over rows may take at a time.
struct ChunkLimit {
  // Of rows as they are read. Larger chunks leave the caches between two steps of the work: 390 MB
  // of BF16 took two cores 0.59 s in chunks of 4 MB, 0.63 s in those of 8, 0.81 s in those of 32.
  int64_t bytes = int64_t{4} << 20;

  int64_t rows(const WeightRows& of) const;
};

// The rows as INT8, chunk by chunk: `transform` is done to them, of `ratios` the best is taken (see
// Backend::quantize_rows_searched). Codes and scales are in host memory, for the time of the call.
using OnCodes = std::function<void(int64_t first, const QTensor& codes)>;
void quantize_chunks(Backend& backend, const WeightRows& rows, const ActivationTransform& transform,
                     std::span<const float> ratios, const ChunkLimit& limit,
                     const OnCodes& on_codes);

// The largest magnitude in each column, [k].
std::vector<float> column_amax(ThreadPool& pool, const WeightRows& rows);

}  // namespace octet::quant
