// One linear layer with random weights and activations, ready to run in each of the ways that are
// compared: native INT8, fake INT8, unquantized, and other libraries' INT8 GEMMs.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/gemm_tuning.h"
#include "octet/tools/gemm_shape.h"

namespace octet::measure {

// Random operands whose every element is a function of its place: the exact product can be computed
// from any element without keeping a second copy, and the number of threads that fill a matrix does
// not show in it.
using ElementAt = float (*)(int64_t row, int64_t column, int64_t k);

// A few of the channels are much larger than the rest, as those of a transformer are.
float activation(int64_t row, int64_t column, int64_t k);

float weight(int64_t row, int64_t column, int64_t k);

// dtype: BF16 or F32. The matrix [rows, k] in the backend's memory.
Buffer random_matrix(Backend& backend, DType dtype, int64_t rows, int64_t k, ElementAt element);

// Which paths besides the native one will run: no memory is taken for others.
struct OtherWays {
  bool unquantized = false;
  bool fake = false;   // implies unquantized
  bool peers = false;  // of GemmTuning::gemm_peers()
};

class LinearCase {
 public:
  // dtype: BF16 or F32, of activations, outputs and the unquantized weight.
  LinearCase(Backend& backend, const GemmShape& shape, DType dtype, const OtherWays& ways);

  void quantize();  // activations -> int8; done once by the constructor
  void gemm();      // int8 x int8 -> output
  void native() {
    quantize();
    gemm();
  }
  // As stacks do it whose "INT8" never reaches an integer unit: the activations are quantized and
  // both operands dequantized in each call, then multiplied unquantized.
  void fake();
  void unquantized();
  void peer(const GemmPeer& peer);
  // Ways of the device for this linear, where `unquantized` was asked for; they live as long as the
  // case and read its activations.
  std::vector<LinearPeer> linear_peers();
  void peer(const LinearPeer& peer) { peer.run(activations(), output()); }

  // Error of the way that ran last against the exact product of the unquantized operands: L2 norm
  // over L2 norm, on `samples` outputs spread over the matrix.
  double relative_error(int samples) const;
  // The same of a way that runs now; NaN where it leaves one of these outputs unwritten.
  double relative_error(const std::function<void()>& way, int samples);

  // Runs the peer once. False, with a log line, when it does not take this shape. Throws Error,
  // with its name, when its outputs are not ours: a time of something else is worth nothing.
  bool try_peer(const GemmPeer& peer);

 private:
  TensorView activations() const { return activations_.view(dtype_, {shape_.m, shape_.k}); }
  TensorView output() const { return output_.view(dtype_, {shape_.m, shape_.n}); }
  QTensor quantized_activations() const;
  QTensor quantized_weight() const;
  std::pair<int64_t, int64_t> sampled_place(int64_t sample) const;
  // Single elements of the output: to bring all of it to the host would take longer than the GEMM.
  std::vector<double> sampled_output(int samples) const;
  void poison_output(int samples);

  Backend& backend_;
  GemmShape shape_;
  DType dtype_;
  Buffer activations_;  // [m, k]
  Buffer q_activations_, row_scale_;
  Buffer output_;  // [m, n]
  QWeight packed_;
  Buffer weight_;                // [n, k], unquantized
  Buffer q_weight_, col_scale_;  // plain rows, what a fake path and peers start from
  Buffer dequantized_activations_, dequantized_weight_;
};

}  // namespace octet::measure
