#include "nn/linear.h"

#include "base/error.h"

namespace octet::nn {
namespace {

void enter(Context& ctx, const Linear& w) {
  if (ctx.profile != nullptr) ctx.profile->enter(w.layer);
}

}  // namespace

Operand Operand::for_int8(Context& ctx, int64_t rows, int64_t k) {
  Operand made;
  made.values_ = ctx.backend.allocate(bytes_of(DType::i8, {rows, k}));
  made.scales_ = ctx.backend.allocate(bytes_of(DType::f32, {rows}));
  made.quantized_ = {made.values_.view(DType::i8, {rows, k}),
                     made.scales_.view(DType::f32, {rows})};
  return made;
}

Operand operand(Context& ctx, const ConstTensorView& x, const Linear& w) {
  if (!w.is_int8()) {
    Operand made;
    made.plain_ = x;
    return made;
  }
  enter(ctx, w);
  Operand made = Operand::for_int8(ctx, x.shape[0], x.shape[1]);
  ctx.backend.quantize_rows(x, w.quantized->transform, made.quantized_);
  return made;
}

Operand normed(Context& ctx, const ConstTensorView& x, const RowNorm& how, const Linear& w) {
  enter(ctx, w);
  if (!w.is_int8()) {
    Operand made;
    made.memory_.emplace(ctx.matrix(x.shape[0], x.shape[1]));
    made.plain_ = *made.memory_;
    ctx.backend.norm(x, how, *made.memory_);
    return made;
  }
  Operand made = Operand::for_int8(ctx, x.shape[0], x.shape[1]);
  ctx.backend.norm_quantize(x, how, w.quantized->transform, made.quantized_);
  return made;
}

void linear_into(Context& ctx, const Operand& x, const Linear& w, const TensorView& out) {
  check(x.is_int8() == w.is_int8(), "linear {}: the operand was made for another weight", w.layer);
  enter(ctx, w);
  if (w.is_int8()) {
    const Fusion fusion = w.quantized->bias ? Fusion::bias : Fusion::none;
    ctx.backend.gemm({x.quantized(), &*w.quantized, out}, fusion);
  } else {
    ctx.backend.matmul(x.plain(), w.weight_view(), out, w.bias_view());
  }
}

Matrix linear(Context& ctx, const Operand& x, const Linear& w) {
  Matrix out = ctx.matrix(x.row_count(), w.n);
  linear_into(ctx, x, w, out);
  return out;
}

Matrix linear(Context& ctx, const ConstTensorView& x, const Linear& w) {
  return linear(ctx, operand(ctx, x, w), w);
}

Matrix swiglu(Context& ctx, const Operand& x, const Linear& gate_up) {
  const int64_t columns = gate_up.n / 2;
  Matrix out = ctx.matrix(x.row_count(), columns);
  if (gate_up.is_int8()) {
    enter(ctx, gate_up);
    ctx.backend.gemm({x.quantized(), &*gate_up.quantized, out}, Fusion::swiglu);
  } else {
    const Matrix both = linear(ctx, x, gate_up);
    ctx.backend.swiglu(columns_of(both, 0, columns), columns_of(both, columns, columns), out);
  }
  return out;
}

Matrix conv2d(Context& ctx, const ConstTensorView& x, int64_t height, int64_t width,
              const Conv& w) {
  enter(ctx, w.matrix);
  Matrix out = ctx.matrix(x.shape[0], w.matrix.n);
  ctx.backend.conv2d({.x = x,
                      .weight = w.matrix.weight_view(),
                      .bias = w.matrix.bias_view(),
                      .out = out,
                      .height = height,
                      .width = width,
                      .kernel = w.kernel});
  return out;
}

}  // namespace octet::nn
