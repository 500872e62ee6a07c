#include "nn/linear.h"

#include "base/error.h"

namespace octet::nn {
namespace {

template <class Layer>
void enter(Context& ctx, const Layer& layer) {
  if (ctx.profile != nullptr) ctx.profile->enter(layer);
}

void tell_tap(Context& ctx, const Operand& x, const Linear& w) {
  if (ctx.tap == nullptr) return;
  check(x.plain() != nullptr, "linear {}: its inputs are watched, and must not be quantized",
        w.name);
  ctx.tap->input(w, *x.plain());
}

// Under which activations are quantized for a part; nullptr: they are not.
const ActivationTransform* transform_of(const LinearPart& part) {
  if (part.is_int8()) return &part.quantized->transform;
  return part.rounding ? &part.rounding->transform : nullptr;
}

void convolve_into(Context& ctx, const ConstTensorView& x, const ConvShape& shape, const Conv& w,
                   const std::optional<ConvArgs::Strip>& strip, const TensorView& out) {
  enter(ctx, w.layer);
  ctx.backend.conv2d({.x = x,
                      .weight = w.matrix.weight_view(),
                      .bias = w.matrix.bias_view(),
                      .out = out,
                      .height = shape.height,
                      .width = shape.width,
                      .kernel = w.kernel,
                      .doubled = shape.doubled,
                      .strip = strip});
}

// height and width of what comes out.
Matrix convolved(Context& ctx, const ConstTensorView& x, int64_t height, int64_t width,
                 const Conv& w, bool doubled) {
  Matrix out = ctx.matrix(height * width, w.matrix.n);
  convolve_into(ctx, x, {.height = height, .width = width, .doubled = doubled}, w, {}, out);
  return out;
}

}  // namespace

bool Operand::fits(const Linear& w) const {
  if (quantized_.size() != w.parts.size()) return false;
  for (size_t i = 0; i < w.parts.size(); ++i) {
    const bool there = w.parts[i].is_int8()  ? static_cast<bool>(quantized_[i].values)
                       : w.parts[i].rounding ? quantized_[i].rounded.has_value()
                                             : plain_.has_value();
    if (!there) return false;
  }
  return true;
}

Operand::Quantized Operand::quantized(Context& ctx, int64_t rows, int64_t k) {
  Quantized made;
  made.values = ctx.backend.allocate(bytes_of(DType::i8, {rows, k}));
  made.scales = ctx.backend.allocate(bytes_of(DType::f32, {rows}));
  made.rows = {made.values.view(DType::i8, {rows, k}), made.scales.view(DType::f32, {rows})};
  return made;
}

void Operand::dequantize(Context& ctx, Quantized& made) {
  made.rounded.emplace(ctx.matrix(made.rows.rows(), made.rows.k()));
  ctx.backend.dequantize_rows(made.rows, *made.rounded);
}

ConstTensorView Operand::floating(size_t i) const {
  return quantized_[i].rounded ? ConstTensorView(*quantized_[i].rounded) : *plain_;
}

Operand operand(Context& ctx, const ConstTensorView& x, const Linear& w) {
  enter(ctx, w);
  Operand made;
  made.rows_ = x.shape[0];
  for (const LinearPart& part : w.parts) {
    const ActivationTransform* transform = transform_of(part);
    if (transform == nullptr) {
      made.plain_ = x;
      made.quantized_.emplace_back();
      continue;
    }
    made.quantized_.push_back(Operand::quantized(ctx, x.shape[0], x.shape[1]));
    ctx.backend.quantize_rows(x, *transform, made.quantized_.back().rows);
    if (part.rounding) Operand::dequantize(ctx, made.quantized_.back());
  }
  return made;
}

void Operand::add_normed(Context& ctx, const ConstTensorView& x, const RowNorm& how,
                         const LinearPart& part) {
  if (const ActivationTransform* transform = transform_of(part)) {
    quantized_.push_back(quantized(ctx, x.shape[0], x.shape[1]));
    ctx.backend.norm_quantize(x, how, *transform, quantized_.back().rows);
    if (part.rounding) dequantize(ctx, quantized_.back());
    return;
  }
  quantized_.emplace_back();
  if (plain_) return;
  memory_.emplace(ctx.matrix(x.shape[0], x.shape[1]));
  plain_ = *memory_;
  ctx.backend.norm(x, how, *memory_);
}

Operand normed(Context& ctx, const ConstTensorView& x, const RowNorm& how, const Linear& w) {
  enter(ctx, w);
  Operand made;
  made.rows_ = x.shape[0];
  for (const LinearPart& part : w.parts) made.add_normed(ctx, x, how, part);
  return made;
}

Operand add_gated_normed(Context& ctx, const TensorView& h, const GatedTerm& term,
                         const RowNorm& how, const Linear& w) {
  enter(ctx, w);
  Operand made;
  made.rows_ = h.shape[0];
  for (const LinearPart& part : w.parts) {
    if (&part != &w.parts.front()) {  // h is already the sum
      made.add_normed(ctx, h, how, part);
    } else if (const ActivationTransform* transform = transform_of(part)) {
      made.quantized_.push_back(Operand::quantized(ctx, h.shape[0], h.shape[1]));
      ctx.backend.add_gated_norm_quantize(h, term.x, term.norm, term.gate, how, *transform,
                                          made.quantized_.back().rows);
      if (part.rounding) Operand::dequantize(ctx, made.quantized_.back());
    } else {
      ctx.backend.add_gated(h, term.x, term.norm, term.gate);
      made.add_normed(ctx, h, how, part);
    }
  }
  return made;
}

void linear_into(Context& ctx, const Operand& x, const Linear& w, const TensorView& out) {
  check(x.fits(w), "linear {}: the operand was made for another weight", w.layer);
  tell_tap(ctx, x, w);
  int64_t first = 0;
  for (size_t i = 0; i < w.parts.size(); ++i) {
    const LinearPart& part = w.parts[i];
    const TensorView columns = columns_of(out, first, part.n);
    if (ctx.profile != nullptr) ctx.profile->enter(w, part.rounding.has_value());
    if (part.is_int8()) {
      const Fusion fusion = part.quantized->bias ? Fusion::bias : Fusion::none;
      ctx.backend.gemm({x.quantized(i), &*part.quantized, columns}, fusion);
    } else {
      ctx.backend.matmul(x.floating(i), part.weight_view(), columns, part.bias_view());
    }
    first += part.n;
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
  if (gate_up.parts.size() == 1 && gate_up.is_int8()) {
    check(x.fits(gate_up), "linear {}: the operand was made for another weight", gate_up.layer);
    enter(ctx, gate_up);
    ctx.backend.gemm({x.quantized(0), &*gate_up.parts.front().quantized, out}, Fusion::swiglu);
  } else {
    const Matrix both = linear(ctx, x, gate_up);
    ctx.backend.swiglu(columns_of(both, 0, columns), columns_of(both, columns, columns), out);
  }
  return out;
}

Matrix conv2d(Context& ctx, const ConstTensorView& x, int64_t height, int64_t width,
              const Conv& w) {
  return convolved(ctx, x, height, width, w, /*doubled=*/false);
}

Matrix conv2d_doubled(Context& ctx, const ConstTensorView& x, int64_t height, int64_t width,
                      const Conv& w) {
  return convolved(ctx, x, 2 * height, 2 * width, w, /*doubled=*/true);
}

void conv2d_strip(Context& ctx, const ConstTensorView& x, const ConvShape& shape, const Conv& w,
                  const ConvArgs::Strip& strip, const TensorView& out) {
  convolve_into(ctx, x, shape, w, strip, out);
}

}  // namespace octet::nn
