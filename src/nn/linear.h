// Linear layers: the same calls whether a weight is INT8 or not.
#pragma once

#include <optional>
#include <vector>

#include "nn/context.h"
#include "nn/weights.h"

namespace octet::nn {

// tanh(gate) * norm(x), on its way to a sum: see Backend::add_gated().
struct GatedTerm {
  ConstTensorView x;
  RowNorm norm;
  ConstTensorView gate;
};

// What a linear multiplies: rows of activations, quantized where its weight is. Linears that share
// their input (and its transform) share one of these.
class Operand {
 public:
  int64_t row_count() const { return rows_; }
  // As given; nullptr where all parts are rounded or INT8.
  const ConstTensorView* plain() const { return plain_ ? &*plain_ : nullptr; }
  // For the part `i` of the linear that it was made for.
  ConstTensorView floating(size_t i) const;
  const QTensor& quantized(size_t i) const { return quantized_[i].rows; }
  bool fits(const Linear& w) const;

 private:
  friend Operand operand(Context&, const ConstTensorView&, const Linear&);
  friend Operand normed(Context&, const ConstTensorView&, const RowNorm&, const Linear&);
  friend Operand add_gated_normed(Context&, const TensorView&, const GatedTerm&, const RowNorm&,
                                  const Linear&);
  struct Quantized {
    Buffer values, scales;
    QTensor rows;                   // no data for a part that is neither INT8 nor rounded
    std::optional<Matrix> rounded;  // what `rows` stand for, of a part that is rounded
  };
  static Quantized quantized(Context& ctx, int64_t rows, int64_t k);
  // Of norm(x): adds a part that is not there yet.
  void add_normed(Context& ctx, const ConstTensorView& x, const RowNorm& how,
                  const LinearPart& part);
  // Once the rows of `made` are there.
  static void dequantize(Context& ctx, Quantized& made);

  int64_t rows_ = 0;
  std::optional<Matrix> memory_;          // of plain_, unless it is somebody else's
  std::optional<ConstTensorView> plain_;  // where a part is neither INT8 nor rounded
  std::vector<Quantized> quantized_;      // one for each part
};

// x as the linear wants it; x must outlive the operand.
Operand operand(Context& ctx, const ConstTensorView& x, const Linear& w);
// The same of norm(x).
Operand normed(Context& ctx, const ConstTensorView& x, const RowNorm& how, const Linear& w);
// h += term, then normed() of that h: in one pass over h where the linear is quantized.
Operand add_gated_normed(Context& ctx, const TensorView& h, const GatedTerm& term,
                         const RowNorm& how, const Linear& w);

// x W^T + bias
Matrix linear(Context& ctx, const Operand& x, const Linear& w);
Matrix linear(Context& ctx, const ConstTensorView& x, const Linear& w);
void linear_into(Context& ctx, const Operand& x, const Linear& w, const TensorView& out);

// silu(x Wgate^T) * (x Wup^T), of a weight with the rows of both; out has half as many columns.
Matrix swiglu(Context& ctx, const Operand& x, const Linear& gate_up);

// x convolved; x [height * width, channels].
Matrix conv2d(Context& ctx, const ConstTensorView& x, int64_t height, int64_t width, const Conv& w);
// The same of x with each pixel as two by two: four times as many rows.
Matrix conv2d_doubled(Context& ctx, const ConstTensorView& x, int64_t height, int64_t width,
                      const Conv& w);
// The same as `shape` says, of a strip; see ConvArgs.
void conv2d_strip(Context& ctx, const ConstTensorView& x, const ConvShape& shape, const Conv& w,
                  const ConvArgs::Strip& strip, const TensorView& out);

}  // namespace octet::nn
