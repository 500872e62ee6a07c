// One linear layer with random weights and activations, ready to run in each of the ways that are
// compared: native INT8, fake INT8 and unquantized.
#pragma once

#include "backend/backend.h"
#include "octet/bench.h"

namespace octet::measure {

class LinearCase {
 public:
  // dtype: BF16 or F32, of activations, outputs and the unquantized weight. Without `compare` only
  // the native path can run, and memory for the others is not taken.
  LinearCase(Backend& backend, const GemmShape& shape, DType dtype, bool compare);

  void quantize();  // activations -> int8
  void gemm();      // int8 x int8 -> output
  void native() {
    quantize();
    gemm();
  }
  // As stacks do it whose "INT8" never reaches an integer unit: the activations are quantized and
  // both operands dequantized in each call, then multiplied unquantized.
  void fake();
  void unquantized();

  // Error of the path that ran last against the exact product of the unquantized operands: L2 norm
  // over L2 norm, on `samples` outputs spread over the matrix.
  double relative_error(int samples) const;

 private:
  TensorView activations() const { return activations_.view(dtype_, {shape_.m, shape_.k}); }
  TensorView output() const { return output_.view(dtype_, {shape_.m, shape_.n}); }
  QTensor quantized_activations() const;
  QTensor quantized_weight() const;

  Backend& backend_;
  GemmShape shape_;
  DType dtype_;
  Buffer activations_;  // [m, k]
  Buffer q_activations_, row_scale_;
  Buffer output_;  // [m, n]
  QWeight packed_;
  // Only to compare.
  Buffer weight_;                // [n, k], unquantized
  Buffer q_weight_, col_scale_;  // plain rows, what a fake path starts from
  Buffer dequantized_activations_, dequantized_weight_;
};

}  // namespace octet::measure
