// Attention among the rows of one matrix, as transformers of images have it.
#pragma once

#include <functional>

#include "nn/linear.h"
#include "octet/model_options.h"

namespace octet::nn {

// How far off attention's output may be for `auto` to take INT8 scores: its NRMSE against f32, of
// each layer of a trained model and of heads that are made to be difficult. They are further off:
// tests measure it, and hold scores_for() to it.
inline constexpr double kInt8ScoresGate = 0.005;

// The one place where `auto` is decided.
AttentionScores scores_for(AttentionMode mode);
// The mode that asks for these.
AttentionMode mode_of(AttentionScores scores);

// Heads of q and k, which are normed and rotated, see HeadRotation; v has as many as k.
struct AttentionHeads {
  int64_t q_heads = 0, k_heads = 0;
  float eps = 0;
  ConstTensorView q_weight, k_weight;  // F32 [head_dim], of the norms
  ConstTensorView cos, sin;            // F32 [rows, head_dim / 2]

  int64_t head_dim() const { return q_weight.shape[0]; }
};

// Heads of q, k and v, side by side, are made of x by one linear; x is released behind it.
// -> [rows - first, heads of q]: of the rows from the first on, which look at all.
Matrix self_attention(Context& ctx, Operand x, const Linear& qkv, const AttentionHeads& heads,
                      int64_t first = 0);
// The same, ctx.rows_at_once rows at a time: `make` gives the linear's operand for some of them,
// `take` gets what comes of rows that count from the first. On a GPU another number of rows may get
// another kernel, which rounds elsewhere; a host gives the same bits.
using MakeRows = std::function<Operand(int64_t row, int64_t count)>;
using TakeRows = std::function<void(int64_t row, Matrix mixed)>;
void self_attention_by_rows(Context& ctx, int64_t rows, const MakeRows& make, const Linear& qkv,
                            const AttentionHeads& heads, int64_t first, const TakeRows& take);

}  // namespace octet::nn
