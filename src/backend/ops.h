// Arguments of the ops between a model's linears.
//
// Matrices are [rows, channels], F32 or BF16 and all of one type within a call; images are matrices
// too, one row per pixel, top left first. Vectors that come from a checkpoint (weights and biases
// of norms) are F32, vectors that the model computes (modulation, gates) have the matrices' type.
// Everything between reading and the one rounding of the result is computed in f32 or wider.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "tensor/tensor.h"

namespace octet {

// y = norm(x) * weight * (1 + scale), for each row.
struct RowNorm {
  enum class Kind : uint8_t {
    rms,    // x / sqrt(mean(x^2) + eps)
    layer,  // (x - mean(x)) / sqrt(var(x) + eps), var divided by the number of channels
  };

  Kind kind = Kind::rms;
  float eps = 0;
  ConstTensorView weight;  // F32 [channels], or no data for ones
  ConstTensorView scale;   // of x's type [channels], or no data for zeros
};

// Each head's vector of head_dim elements: RMS norm, then a rotation of the pairs (j, j + half),
// half = head_dim / 2, by the angles of its row.
struct HeadRotation {
  int64_t heads = 0;
  float eps = 0;
  ConstTensorView weight;    // F32 [head_dim], of the norm
  ConstTensorView cos, sin;  // F32 [rows, head_dim / 2], rows as far apart in both
  // The last heads may have a norm of their own, so that q and k, side by side, are one call.
  int64_t second_heads = 0;
  ConstTensorView second_weight = {};  // F32 [head_dim], with second_heads
};

// The heads of rows in int8, each with its own scale, as attention in int8 takes them.
struct QuantizedHeads {
  TensorView codes;        // I8 [rows, heads * head_dim]
  TensorView scales;       // F32 [heads, rows]
  float scale_factor = 1;  // of all scales: what the scores are multiplied by, for instance
};

// The values of attention in 8 bits, as attention in INT8 takes them: transposed, a row for each
// channel. A code is kept with 128 added to it, which makes it one of 1 to 255.
struct QuantizedValues {
  static constexpr int64_t kKeys = 128;  // that share a scale, with all channels of their head
  TensorView codes;   // U8 [heads * head_dim, keys rounded up to kKeys]; past the last key: 128
  TensorView scales;  // F32 [heads, columns of codes / kKeys]

  // Within sixteen keys codes lie as the scores of a lane of the tensor cores do: which key's code
  // is in this column.
  static constexpr int64_t key_at(int64_t column) {
    const int64_t lane = column / 4 % 4, i = column % 4;
    return column / 16 * 16 + 8 * (i / 2) + 2 * lane + i % 2;
  }
};

// out = softmax(q k^T / sqrt(head_dim)) v, for each head; heads lie side by side in a row. Several
// heads of q may share one of k and v: head h reads number h / (heads / kv_heads).
//
// Where v is codes, q and k are, too, and the weights get 8 bits: those of the keys that share a
// scale of v are rounded to whole numbers from 0 to 255, relative to the largest of them in their
// row; the sum that they are divided by is that of these.
struct AttentionArgs {
  ConstTensorView q;     // [rows, heads * head_dim]; F32, BF16, or the codes of quantized heads
  ConstTensorView k, v;  // [keys, kv_heads * head_dim]; k of q's type, v of out's, or codes
  TensorView out;        // [rows, heads * head_dim]; of q's type, or F32 or BF16 where q is codes
  int64_t heads = 0;
  int64_t kv_heads = 0;
  // Row i sees the keys 0 to i; then there are as many rows as keys. A NaN or an infinity in v may
  // show in rows that do not see it: kernels multiply it by the zero of a mask.
  bool causal = false;
  // Where q and k are codes, I8: what they are multiplied by, F32 [heads, rows], [kv_heads, keys].
  ConstTensorView q_scales = {}, k_scales = {};
  // Where v is the codes of QuantizedValues: their scales. A NaN in v shows in the whole head; GPU
  // kernels make infinities of values beyond about 2^45, and lose bits of those below 2^-50.
  ConstTensorView v_scales = {};

  bool is_int8() const { return q.dtype == DType::i8; }
  bool has_int8_values() const { return v.dtype == DType::u8; }
  int64_t rows() const { return q.shape[0]; }
  int64_t keys() const { return k.shape[0]; }
  int64_t head_dim() const { return q.shape[1] / heads; }
};

// Rows of an image that follow one another.
struct PixelRange {
  int64_t first = 0, count = 0;
};

// A convolution of a whole image, without its matrices.
struct ConvShape {
  int64_t height = 0, width = 0;  // of the result
  int64_t channels = 0, out_channels = 0;
  int64_t kernel = 0;
  bool doubled = false;
  DType dtype = DType::f32;

  int64_t pixels() const { return height * width; }
  // How many a GPU multiplies at a time: their number decides how its library sums.
  int64_t pixels_at_once() const;
  // The lines of the input that these pixels of the result are made of.
  PixelRange reach(const PixelRange& made) const;
};

// A convolution with stride 1, whose input is continued by kernel / 2 zeros on all sides.
struct ConvArgs {
  ConstTensorView x;  // [height * width, channels], or a quarter of the rows where it is doubled
  ConstTensorView weight;  // [out channels, kernel * kernel * channels], the tap before the channel
  ConstTensorView bias;    // of x's type [out channels]
  TensorView out;          // [height * width, out channels]
  int64_t height = 0, width = 0;
  int64_t kernel = 0;  // 1 or 3
  // Each pixel of x becomes two by two: x is the image at half the height and width. Only with a
  // kernel of 3.
  bool doubled = false;
  // Only some pixels, one after the other: out has those of the image from `first` on, x those of
  // the input from `x_first` on, all of reach() among them. A strip has the bits of the whole image
  // if it begins at a multiple of ConvShape::pixels_at_once(), and ends at one or with the image;
  // any other may differ by roundings.
  struct Strip {
    int64_t first = 0, x_first = 0;
  };
  std::optional<Strip> strip = {};

  // The row of x with a pixel of the image.
  int64_t row_of(int64_t y, int64_t column) const {
    return (doubled ? y / 2 * (width / 2) + column / 2 : y * width + column) - x_first();
  }
  int64_t first() const { return strip ? strip->first : 0; }  // pixel of the image that out has
  int64_t x_first() const { return strip ? strip->x_first : 0; }
  ConvShape shape() const {
    return {height, width, channels(), out_channels(), kernel, doubled, x.dtype};
  }
  int64_t channels() const { return x.shape[1]; }
  int64_t out_channels() const { return weight.shape[0]; }
};

// What group_norm() has to know of an image whose rows are not there at the same time; see
// Backend::begin_group_sums().
struct GroupSums {
  DType dtype = DType::f32;
  int64_t rows = 0, channels = 0;  // of the whole image
  int64_t added = 0;               // rows so far
  Buffer memory;                   // in the backend's own form
};

// y = (x - mean) / sqrt(var + eps) * weight + bias, with mean and var over all rows and over the
// channels of a group; then SiLU if requested. The output may be x itself.
struct GroupNorm {
  int64_t groups = 0;
  float eps = 0;
  ConstTensorView weight, bias;  // F32 [channels]
  bool silu = false;
  // The image that x is some rows of: mean and var are its own. Null: x is all.
  const GroupSums* image = nullptr;
};

// How many evaluations of networks a step may combine.
inline constexpr size_t kMostBranches = 4;

// What one evaluation of a network says, and how much it counts.
struct BranchVelocity {
  ConstTensorView velocity;  // F32 or BF16 [rows, channels]
  float weight = 1;
};

// A step of Euler's method along a combined velocity, where every operation rounds once to f32:
//
//   v = weight[0] * velocity[0] (+ weight[1] * velocity[1] ...), in this order
//   z = z + delta * v
struct EulerStep {
  std::array<BranchVelocity, kMostBranches> branches;  // the first `count` of them
  size_t count = 1;
  float delta = 0;
  TensorView z;         // F32, in place
  TensorView velocity;  // F32, v
  TensorView rounded;   // z in the type of the branches, or no data
  TensorView overflow;  // I32 [1]: becomes 1 where a new z is NaN or infinite, else it stays

  bool rounds() const { return rounded.data != nullptr; }
  DType dtype() const { return branches[0].velocity.dtype; }
};

enum class Activation : uint8_t {
  silu,  // x / (1 + exp(-x)), as in exact_silu.h
  gelu,  // x * (1 + erf(x / sqrt(2))) / 2
};

// Of Backend::quantize_rows_searched(): how many ratios there may be, and how small. With these,
// and k at most kMaxK, a row's sum of squares fits an int64.
inline constexpr int kMaxClipRatios = 32;
inline constexpr float kMinClipRatio = 1.0f / 16;

}  // namespace octet
