#include "nn/attention.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/invalid_request.h"

namespace octet::nn {
namespace {

// Heads as INT8 codes, with a scale for each row of each head; rows of scales at multiples of 16
// bytes, as kernels want them.
struct HeadCodes {
  Buffer codes_memory, scales_memory;
  QuantizedHeads heads;

  HeadCodes(Context& ctx, int64_t rows, int64_t columns, int64_t head_count) {
    const int64_t stride = round_up(rows, 4);
    codes_memory = ctx.backend.allocate(bytes_of(DType::i8, {rows, columns}));
    scales_memory = ctx.backend.allocate(bytes_of(DType::f32, {head_count, stride}));
    heads.codes = codes_memory.view(DType::i8, {rows, columns});
    heads.scales = TensorView::rows(scales_memory.data(), DType::f32, head_count, rows, stride);
  }
};

// Every n-th row.
ConstTensorView sampled(const ConstTensorView& x, int64_t n) {
  return ConstTensorView::rows(x.data, x.dtype, ceil_div(x.shape[0], n), x.shape[1],
                               n * x.row_stride());
}

// Of q and k, side by side. Keys lose their mean: softmax does not see what all of them have in
// common, and the codes of what is left are finer. Any vector would do, so that of a hundred rows
// does as well.
HeadCodes quantized(Context& ctx, const TensorView& q_and_k, const HeadRotation& how) {
  constexpr int64_t kSamples = 128;  // at most, which GPUs add up in one launch
  const int64_t every = std::max<int64_t>(1, ceil_div(q_and_k.shape[0], kSamples));
  const int64_t k_columns = q_and_k.shape[1] / how.heads * how.second_heads;
  HeadCodes codes(ctx, q_and_k.shape[0], q_and_k.shape[1], how.heads);
  const Buffer memory = ctx.backend.allocate(bytes_of(DType::f32, {k_columns}));
  const TensorView mean = memory.view(DType::f32, {k_columns});
  const TensorView k = columns_of(q_and_k, q_and_k.shape[1] - k_columns, k_columns);
  ctx.backend.rotated_head_mean(sampled(k, every),
                                {.heads = how.second_heads,
                                 .eps = how.eps,
                                 .weight = how.second_weight,
                                 .cos = sampled(how.cos, every),
                                 .sin = sampled(how.sin, every)},
                                mean);
  ctx.backend.rotate_quantize_heads(q_and_k, how, mean, codes.heads);
  return codes;
}

// Values as codes, with a scale for each block of keys of each head.
struct ValueCodes {
  Buffer codes_memory, scales_memory;
  QuantizedValues values;

  ValueCodes(Context& ctx, const TensorView& v, int64_t heads) {
    const int64_t blocks = ceil_div(v.shape[0], QuantizedValues::kKeys);
    const Shape codes{v.shape[1], blocks * QuantizedValues::kKeys}, scales{heads, blocks};
    codes_memory = ctx.backend.allocate(bytes_of(DType::u8, codes));
    scales_memory = ctx.backend.allocate(bytes_of(DType::f32, scales));
    values.codes = codes_memory.view(DType::u8, codes);
    values.scales = scales_memory.view(DType::f32, scales);
    ctx.backend.quantize_values(v, heads, values);
  }
};

// `args` without its queries; q_scales: theirs, or no data.
void attend(Context& ctx, AttentionArgs args, const TensorView& q, const TensorView& q_scales,
            const TakeRows& take) {
  for_some_rows(ctx, q.shape[0], [&](int64_t row, int64_t count) {
    Matrix mixed = ctx.matrix(count, q.shape[1]);
    args.q = rows_of(q, row, count);
    if (q_scales.data != nullptr) args.q_scales = columns_of(q_scales, row, count);
    args.out = mixed;
    ctx.backend.attention(args);
    take(row, std::move(mixed));
  });
}

}  // namespace

AttentionScores scores_for(AttentionMode mode) {
  switch (mode) {
    // INT8 scores miss the gate of 0.005. In the small trained model (heads of 64) layers are off
    // by 0.0034 to 0.0051, bf16 by 0.0023 to 0.0030; random heads by 0.0085 (of 64) to 0.0103 (of
    // 256), bf16 by 0.0035 to 0.0038. tests/models/int8_scores_test.cpp fails when codes get finer.
    // Whoever changes this asks Backend::why_no_int8_attention() as well.
    case AttentionMode::automatic:
    case AttentionMode::floating: return AttentionScores::floating;
    case AttentionMode::int8: return AttentionScores::int8;
    case AttentionMode::int8_full: return AttentionScores::int8_full;
  }
  fail("attention: unknown mode {}", static_cast<int>(mode));
}

AttentionMode mode_of(AttentionScores scores) {
  switch (scores) {
    case AttentionScores::floating: return AttentionMode::floating;
    case AttentionScores::int8: return AttentionMode::int8;
    case AttentionScores::int8_full: return AttentionMode::int8_full;
  }
  fail("attention: unknown scores {}", static_cast<int>(scores));
}

Matrix self_attention(Context& ctx, Operand x, const Linear& qkv, const AttentionHeads& heads,
                      int64_t first) {
  Context whole = ctx;
  whole.rows_at_once = 0;
  std::optional<Matrix> all;
  self_attention_by_rows(
      whole, x.row_count(), [&](int64_t, int64_t) { return std::move(x); }, qkv, heads, first,
      [&](int64_t, Matrix mixed) { all = std::move(mixed); });
  return *std::move(all);
}

void self_attention_by_rows(Context& ctx, int64_t rows, const MakeRows& make, const Linear& qkv,
                            const AttentionHeads& heads, int64_t first, const TakeRows& take) {
  const int64_t q_columns = heads.q_heads * heads.head_dim();
  const int64_t k_columns = heads.k_heads * heads.head_dim();
  const Matrix all = ctx.matrix(rows, qkv.n);
  for_some_rows(ctx, rows, [&](int64_t row, int64_t count) {
    linear_into(ctx, make(row, count), qkv, rows_of(all, row, count));
  });
  const TensorView q = rows_of(columns_of(all, 0, q_columns), first, rows - first);
  const TensorView k = columns_of(all, q_columns, k_columns);
  const TensorView v = columns_of(all, q_columns + k_columns, k_columns);
  // Both at once; the rows of q before the first cost less than a second call. (In the epilogue of
  // the linear, which needs a tile of whole heads there, it cost the H200 5 ms of a step and saved
  // 3.)
  const TensorView q_and_k = columns_of(all, 0, q_columns + k_columns);
  const HeadRotation rotation{.heads = heads.q_heads + heads.k_heads,
                              .eps = heads.eps,
                              .weight = heads.q_weight,
                              .cos = heads.cos,
                              .sin = heads.sin,
                              .second_heads = heads.k_heads,
                              .second_weight = heads.k_weight};
  const AttentionArgs args{.k = k, .v = v, .heads = heads.q_heads, .kv_heads = heads.k_heads};
  if (ctx.scores == AttentionScores::floating) {
    ctx.backend.rotate_heads(q_and_k, rotation);
    return attend(ctx, args, q, {}, take);
  }
  const bool full = ctx.scores == AttentionScores::int8_full;
  const std::string reason = full ? ctx.backend.why_no_int8_values(heads.head_dim(), ctx.dtype)
                                  : ctx.backend.why_no_int8_attention(heads.head_dim(), ctx.dtype);
  check_value(reason.empty(), "attention", "`attention`: {}; set it to auto or bf16", reason);
  const HeadCodes both = quantized(ctx, q_and_k, rotation);
  const TensorView& codes = both.heads.codes;
  const TensorView& scales = both.heads.scales;
  AttentionArgs coded = args;
  coded.k = columns_of(codes, q_columns, k_columns);
  coded.k_scales = rows_of(scales, heads.q_heads, heads.k_heads);
  std::optional<ValueCodes> values;
  if (full) {
    values.emplace(ctx, v, heads.k_heads);
    coded.v = values->values.codes;
    coded.v_scales = values->values.scales;
  }
  attend(ctx, coded, rows_of(columns_of(codes, 0, q_columns), first, rows - first),
         columns_of(rows_of(scales, 0, heads.q_heads), first, rows - first), take);
}

}  // namespace octet::nn
