#include "nn/attention.h"

#include <algorithm>

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

// Keys lose their mean: softmax does not see what all of them have in common, and the codes of what
// is left are finer. Any vector would do, so that of some hundred rows does as well.
HeadCodes codes_of_keys(Context& ctx, const TensorView& k, const HeadRotation& how) {
  constexpr int64_t kSamples = 256;
  const int64_t every = std::max<int64_t>(1, k.shape[0] / kSamples);
  HeadCodes codes(ctx, k.shape[0], k.shape[1], how.heads);
  const Buffer memory = ctx.backend.allocate(bytes_of(DType::f32, {k.shape[1]}));
  const TensorView mean = memory.view(DType::f32, {k.shape[1]});
  HeadRotation of_samples = how;
  of_samples.cos = sampled(how.cos, every);
  of_samples.sin = sampled(how.sin, every);
  ctx.backend.rotated_head_mean(sampled(k, every), of_samples, mean);
  ctx.backend.rotate_quantize_heads(k, how, mean, codes.heads);
  return codes;
}

// Of the angles of rows: those from `first` on.
ConstTensorView rows_of_table(const ConstTensorView& table, int64_t first) {
  const int64_t columns = table.shape[1];
  return ConstTensorView(table.data + first * columns * int64_t{sizeof(float)}, DType::f32,
                         {table.shape[0] - first, columns});
}

HeadCodes codes_of_queries(Context& ctx, const TensorView& q, const HeadRotation& how) {
  HeadCodes codes(ctx, q.shape[0], q.shape[1], how.heads);
  ctx.backend.rotate_quantize_heads(q, how, {}, codes.heads);
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

}  // namespace

AttentionScores scores_for(AttentionMode mode) {
  switch (mode) {
    case AttentionMode::automatic:
    case AttentionMode::floating: return AttentionScores::floating;
    case AttentionMode::int8: return AttentionScores::int8;
    case AttentionMode::int8_full: return AttentionScores::int8_full;
  }
  fail("attention: unknown mode {}", static_cast<int>(mode));
}

Matrix self_attention(Context& ctx, const Operand& x, const Linear& qkv,
                      const AttentionHeads& heads, int64_t first) {
  const int64_t rows = x.row_count();
  const int64_t q_columns = heads.q_heads * heads.head_dim();
  const int64_t k_columns = heads.k_heads * heads.head_dim();
  const Matrix all = linear(ctx, x, qkv);
  const TensorView q = rows_of(columns_of(all, 0, q_columns), first, rows - first);
  const TensorView k = columns_of(all, q_columns, k_columns);
  const TensorView v = columns_of(all, q_columns + k_columns, k_columns);
  Matrix mixed = ctx.matrix(rows - first, q_columns);
  if (ctx.scores != AttentionScores::floating) {
    const bool full = ctx.scores == AttentionScores::int8_full;
    const std::string reason = full
                                   ? ctx.backend.why_no_int8_values(heads.head_dim(), ctx.dtype)
                                   : ctx.backend.why_no_int8_attention(heads.head_dim(), ctx.dtype);
    check_value(reason.empty(), "attention", "`attention`: {}; set it to auto or bf16", reason);
    const HeadCodes key_codes =
        codes_of_keys(ctx, k, {heads.k_heads, heads.eps, heads.k_weight, heads.cos, heads.sin});
    const HeadCodes query_codes =
        codes_of_queries(ctx, q,
                         {heads.q_heads, heads.eps, heads.q_weight, rows_of_table(heads.cos, first),
                          rows_of_table(heads.sin, first)});
    AttentionArgs args{
        query_codes.heads.codes, key_codes.heads.codes, v,     mixed,
        heads.q_heads,           heads.k_heads,         false, query_codes.heads.scales,
        key_codes.heads.scales};
    if (!full) {
      ctx.backend.attention(args);
      return mixed;
    }
    const ValueCodes value_codes(ctx, v, heads.k_heads);
    args.v = value_codes.values.codes;
    args.v_scales = value_codes.values.scales;
    ctx.backend.attention(args);
    return mixed;
  }
  // Both at once; the rows of q before the first cost less than a second call. (In the epilogue of
  // the linear, which needs a tile of whole heads there, it cost the H200 5 ms of a step and saved
  // 3.)
  ctx.backend.rotate_heads(columns_of(all, 0, q_columns + k_columns),
                           {.heads = heads.q_heads + heads.k_heads,
                            .eps = heads.eps,
                            .weight = heads.q_weight,
                            .cos = heads.cos,
                            .sin = heads.sin,
                            .second_heads = heads.k_heads,
                            .second_weight = heads.k_weight});
  ctx.backend.attention({q, k, v, mixed, heads.q_heads, heads.k_heads});
  return mixed;
}

}  // namespace octet::nn
