// Linear layers: the same calls whether a weight is INT8 or not.
#pragma once

#include <optional>

#include "nn/context.h"
#include "nn/weights.h"

namespace octet::nn {

// What a linear multiplies: rows of activations, quantized when its weight is. Several linears
// that share their input (and its transform) share one of these.
class Operand {
 public:
  int64_t row_count() const { return plain_ ? plain_->shape[0] : quantized_.rows(); }
  bool is_int8() const { return !plain_.has_value(); }
  const ConstTensorView& plain() const { return *plain_; }
  const QTensor& quantized() const { return quantized_; }

 private:
  friend Operand operand(Context&, const ConstTensorView&, const Linear&);
  friend Operand normed(Context&, const ConstTensorView&, const RowNorm&, const Linear&);
  static Operand for_int8(Context& ctx, int64_t rows, int64_t k);

  std::optional<Matrix> memory_;  // of plain_, unless it is somebody else's
  std::optional<ConstTensorView> plain_;
  Buffer values_, scales_;
  QTensor quantized_;
};

// x as the linear wants it; x must outlive the operand.
Operand operand(Context& ctx, const ConstTensorView& x, const Linear& w);
// The same of norm(x).
Operand normed(Context& ctx, const ConstTensorView& x, const RowNorm& how, const Linear& w);

// x W^T + bias
Matrix linear(Context& ctx, const Operand& x, const Linear& w);
Matrix linear(Context& ctx, const ConstTensorView& x, const Linear& w);
void linear_into(Context& ctx, const Operand& x, const Linear& w, const TensorView& out);

// silu(x Wgate^T) * (x Wup^T), of a weight with the rows of both; out has half as many columns.
Matrix swiglu(Context& ctx, const Operand& x, const Linear& gate_up);

// x convolved; x [height * width, channels].
Matrix conv2d(Context& ctx, const ConstTensorView& x, int64_t height, int64_t width, const Conv& w);

}  // namespace octet::nn
