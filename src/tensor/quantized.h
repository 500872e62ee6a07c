// Quantized tensors: int8 values with one f32 scale per row, value = q * scale.
#pragma once

#include <cstdint>
#include <string>

#include "tensor/tensor.h"

namespace octet {

// Looks at activations [rows, k] (scale per token) or at an unpacked weight [n, k] (per channel).
struct QTensor {
  TensorView values;  // I8 [rows, k], rows may be apart
  TensorView scales;  // F32 [rows], dense

  int64_t rows() const { return values.shape[0]; }
  int64_t k() const { return values.shape[1]; }
};

// What has to be done to an activation row before it is quantized, because the same was done to the
// weight's columns when the weight was made.
enum class Transform : uint8_t {
  none,
  smooth,  // SmoothQuant: multiply channel j by smooth[j]
  rotate,  // ConvRot: the regular Hadamard rotation within consecutive groups of 4^n channels
};

struct ActivationTransform {
  Transform kind = Transform::none;
  ConstTensorView smooth;  // F32 [k], when kind is smooth
  int64_t group = 0;       // 4, 16, 64, 256 or 1024 and a divisor of k, when kind is rotate
  // Each step from there to the codes is rounded to the type of the rows, as operations on tensors
  // of it would be: the codes of PyTorch programs, a little further from the rows, and -128 among
  // them. Nothing to quantize_rows() of F32, nor to other functions. See ref/quantize.cpp.
  bool stepwise = false;
};

// The group in which rows of k values are rotated if `most` (a power of 4) is requested: that, or
// the largest smaller power of 4 that divides k; 0 when none does.
constexpr int64_t rotation_group(int64_t most, int64_t k) {
  int64_t group = most;
  while (group >= 4 && k % group != 0) group /= 4;
  return group >= 4 ? group : 0;
}

// How the rows of a weight are given to Backend::pack() and pack_rows().
enum class RowOrder : uint8_t {
  plain,    // row j is output channel j
  gate_up,  // the gate's rows (w1), then as many rows of the up projection (w3), for swiglu
};

// A weight in plain rows, as files and other programs have it.
struct PlainWeight {
  ConstTensorView codes;   // I8 [n, k], rows may be apart
  ConstTensorView scales;  // F32 [n], or [1]: the same for all rows
  ConstTensorView bias;    // F32, BF16 or F16 [n], or no data
  ActivationTransform transform;
  RowOrder order = RowOrder::plain;
};

// A linear layer's weight as a backend wants it: int8 [n, k] rearranged for its kernels (never read
// it without knowing `layout`), with scales, bias and the transform its activations need.
// Const after pack(); owns its memory.
struct QWeight {
  int64_t n = 0;
  int64_t k = 0;
  bool gated = false;      // gate and up rows alternate: g0 u0 g1 u1 ..., as do the scales
  std::string layout;      // names the arrangement; a kernel refuses any other than its own
  int64_t row_stride = 0;  // bytes, where rows stay as they were given
  Buffer values;
  Buffer col_scale;  // F32 [n]
  Buffer bias;       // F32 [n], or empty
  Buffer smooth;     // F32 [k], or empty
  ActivationTransform transform;

  // The output channel, among those of `values` and col_scale, of a row as RowOrder counts them.
  int64_t channel_of(int64_t row) const {
    if (!gated) return row;
    return row < n / 2 ? 2 * row : 2 * (row - n / 2) + 1;
  }
  // And back.
  int64_t row_of(int64_t channel) const {
    return gated ? channel % 2 * (n / 2) + channel / 2 : channel;
  }
};

}  // namespace octet
