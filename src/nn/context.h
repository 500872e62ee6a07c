// What a forward function runs with: a backend, the type of activations, and who watches.
//
// Matrices own their memory and give it back when they go out of scope. On a GPU that memory comes
// from a pool in the order of the stream, so a forward function simply declares what it needs.
#pragma once

#include <algorithm>
#include <atomic>
#include <utility>

#include "backend/backend.h"
#include "nn/profile.h"

namespace octet::nn {

class Matrix {
 public:
  Matrix(Backend& backend, DType dtype, int64_t rows, int64_t columns)
      : memory_(backend.allocate(bytes_of(dtype, {rows, columns}))),
        view_(memory_.view(dtype, {rows, columns})) {}

  int64_t row_count() const { return view_.shape[0]; }
  int64_t column_count() const { return view_.shape[1]; }
  const TensorView& view() const { return view_; }
  operator const TensorView&() const { return view_; }
  operator ConstTensorView() const { return view_; }

 private:
  Buffer memory_;
  TensorView view_;
};

struct Linear;

// How the scores of attention are multiplied: as activations are, or as INT8 codes. In the last way
// their weights and the values have 8 bits, too.
enum class AttentionScores : uint8_t { floating, int8, int8_full };

// Sees what goes into each linear, for calibration.
class InputTap {
 public:
  virtual ~InputTap() = default;
  virtual void input(const Linear& w, const ConstTensorView& x) = 0;  // x [rows, k], on the backend
};

struct Context {
  Backend& backend;
  DType dtype = DType::bf16;   // of activations and of unquantized weights: F32 or BF16
  Profile* profile = nullptr;  // or nobody
  InputTap* tap = nullptr;     // or nobody; asks for linears that are not INT8
  const std::atomic<bool>* stop = nullptr;  // set by another thread to end the work, or nobody
  AttentionScores scores = AttentionScores::floating;  // of the networks
  // How many rows a network works on at a time where a row does not need the others, to save
  // memory; 0: all.
  int64_t rows_at_once = 0;
  // What a decoder may take for images at a time, where the whole is too much; 0: all it wants.
  uint64_t image_bytes = 0;

  bool is_stopped() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
  // Before each layer: throws Cancelled when the work is to end.
  void begin_layer() const;

  Matrix matrix(int64_t rows, int64_t columns) const {
    return Matrix(backend, dtype, rows, columns);
  }
};

// Calls run(row, count) for all rows, ctx.rows_at_once at a time; once at least.
template <class Run>
void for_some_rows(const Context& ctx, int64_t rows, const Run& run) {
  const int64_t at_once = ctx.rows_at_once > 0 ? ctx.rows_at_once : std::max<int64_t>(rows, 1);
  int64_t row = 0;
  do {
    run(row, std::min(at_once, rows - row));
    row += at_once;
  } while (row < rows);
}

// Parts of a matrix, as views.
TensorView rows_of(const TensorView& matrix, int64_t first, int64_t count);
TensorView columns_of(const TensorView& matrix, int64_t first, int64_t count);
// Columns of a matrix with a single row, as a vector.
ConstTensorView vector_of(const TensorView& row, int64_t first, int64_t count);

// A matrix with the host's values, F32 [rows, columns], rounded to the context's type.
Matrix upload_matrix(Context& ctx, const float* values, int64_t rows, int64_t columns);
// And back, widened to F32.
void download_matrix(Context& ctx, const ConstTensorView& matrix, float* values);

}  // namespace octet::nn
