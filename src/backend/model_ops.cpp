// The ops between the linears: what their arguments must be, for all backends.
#include "backend/argument_checks.h"
#include "backend/backend.h"
#include "backend/op_work.h"
#include "base/checked.h"
#include "base/error.h"

namespace octet {
namespace {

void check_float(std::string_view what, const ConstTensorView& view) {
  check_matrix(what, view, {DType::f32, DType::bf16});
}

// A matrix of the shape and type of x.
void check_like(std::string_view what, const ConstTensorView& view, const ConstTensorView& x) {
  check_matrix(what, view, {x.dtype});
  check_shape(what, view, x.shape);
}

void check_norm(const std::string& op, const ConstTensorView& x, const RowNorm& how) {
  check_float(op + ": x", x);
  check(how.eps >= 0, "{}: eps is {}, expected 0 or more", op, how.eps);
  if (how.weight.data != nullptr) check_vector(op + ": weight", how.weight, x.shape[1]);
  if (how.scale.data != nullptr) check_vector(op + ": scale", how.scale, x.shape[1], x.dtype);
}

void check_add_gated(const std::string& op, const ConstTensorView& h, const ConstTensorView& x,
                     const RowNorm& how, const ConstTensorView& gate) {
  check_norm(op, x, how);
  check_like(op + ": h", h, x);
  check_vector(op + ": gate", gate, x.shape[1], x.dtype);
}

void check_norm_quantize(const std::string& op, const ConstTensorView& x, const RowNorm& how,
                         const ActivationTransform& transform, const QTensor& out) {
  check_norm(op, x, how);
  check_quantized(op + ": out", out);
  check(out.values.shape == x.shape, "{}: out is {}, expected the shape {} of x", op,
        out.values.shape, x.shape);
  check_transform(op, transform, x.shape[1]);
}

void check_rotation(const std::string& op, const ConstTensorView& x, const HeadRotation& how) {
  check_float(op + ": x", x);
  const int64_t rows = x.shape[0], channels = x.shape[1];
  check(how.heads > 0 && channels % (2 * how.heads) == 0,
        "{}: {} channels in {} heads, expected heads of an even number of channels", op, channels,
        how.heads);
  check(how.second_heads >= 0 && how.second_heads <= how.heads,
        "{}: {} of {} heads have a second weight, expected at most all", op, how.second_heads,
        how.heads);
  const int64_t head_dim = channels / how.heads;
  check_vector(op + ": weight", how.weight, head_dim);
  if (how.second_heads > 0) check_vector(op + ": second_weight", how.second_weight, head_dim);
  for (const ConstTensorView* table : {&how.cos, &how.sin}) {
    check_matrix(op + ": cos and sin", *table, {DType::f32});
    check_shape(op + ": cos or sin", *table, {rows, head_dim / 2});
  }
  check(how.cos.row_stride() == how.sin.row_stride(),
        "{}: rows of cos are {} apart, those of sin {}, expected the same", op,
        how.cos.row_stride(), how.sin.row_stride());
}

// Of pixels within the image, with the input that they are made of.
void check_strip(const ConvArgs& args) {
  const ConvShape shape = args.shape();
  const PixelRange made{args.first(), args.out.shape[0]};
  check(made.first >= 0 && made.count <= shape.pixels() - made.first,
        "conv2d: a strip of {} pixels from pixel {} on, of an image of {} x {}", made.count,
        made.first, args.height, args.width);
  const PixelRange needed = shape.reach(made);
  const int64_t from = args.x_first();
  check(
      from >= 0 && from <= needed.first && needed.first + needed.count <= from + args.x.shape[0],
      "conv2d: x has {} pixels from {} on, expected the {} from {} on, of which the strip is made",
      args.x.shape[0], from, needed.count, needed.first);
}

// Unless the first matrix is empty: then there is nothing to do.
template <class Op>
void run_op(OpObserver* observer, std::string_view name, std::initializer_list<Moved> matrices,
            const Op& op) {
  if (matrices.begin()->bytes() == 0) return;
  const Observed observed(observer, name);
  op();
  observed.done(moving(matrices));
}

}  // namespace

void Backend::norm(const ConstTensorView& x, const RowNorm& how, const TensorView& out) {
  check_norm("norm", x, how);
  check_like("norm: out", out, x);
  run_op(op_observer_, "norm", {x, out}, [&] { do_norm(x, how, out); });
}

void Backend::norm_quantize(const ConstTensorView& x, const RowNorm& how,
                            const ActivationTransform& transform, const QTensor& out) {
  check_norm_quantize("norm_quantize", x, how, transform, out);
  run_op(op_observer_, "norm", {x, out}, [&] { do_norm_quantize(x, how, transform, out); });
}

void Backend::rotate_heads(const TensorView& x, const HeadRotation& how) {
  check_rotation("rotate_heads", x, how);
  run_op(op_observer_, "rotary", {x, x, how.cos, how.sin}, [&] { do_rotate_heads(x, how); });
}

void Backend::rotate_quantize_heads(const ConstTensorView& x, const HeadRotation& how,
                                    const ConstTensorView& mean, const QuantizedHeads& out) {
  const std::string op = "rotate_quantize_heads";
  check_rotation(op, x, how);
  if (mean.data != nullptr) {
    const int64_t head_dim = x.shape[1] / how.heads;
    check(mean.shape.rank() == 1 && head_dim > 0 && mean.shape[0] % head_dim == 0 &&
              mean.shape[0] <= x.shape[1],
          "{}: mean is {}, expected one of whole heads, at most [{}]", op, mean.shape, x.shape[1]);
    check_vector(op + ": mean", mean, mean.shape[0]);
  }
  check_matrix(op + ": codes", out.codes, {DType::i8});
  check(out.codes.shape == x.shape, "{}: codes is {}, expected the shape {} of x", op,
        out.codes.shape, x.shape);
  check_matrix(op + ": scales", out.scales, {DType::f32});
  check_shape(op + ": scales", out.scales, {how.heads, x.shape[0]});
  run_op(op_observer_, "rotary", {x, how.cos, how.sin, out},
         [&] { do_rotate_quantize_heads(x, how, mean, out); });
}

void Backend::rotated_head_mean(const ConstTensorView& x, const HeadRotation& how,
                                const TensorView& mean) {
  check_rotation("rotated_head_mean", x, how);
  check(x.shape[0] > 0, "rotated_head_mean: x is {}, expected rows to take the mean of", x.shape);
  check_vector("rotated_head_mean: mean", mean, x.shape[1]);
  run_op(op_observer_, "rotary", {x, how.cos, how.sin},
         [&] { do_rotated_head_mean(x, how, mean); });
}

void Backend::quantize_values(const ConstTensorView& v, int64_t heads, const QuantizedValues& out) {
  const std::string op = "quantize_values";
  check_float(op + ": v", v);
  check(heads > 0 && v.shape[1] % heads == 0,
        "{}: {} channels in {} heads, expected heads that divide them", op, v.shape[1], heads);
  const int64_t blocks = ceil_div(v.shape[0], QuantizedValues::kKeys);
  check_matrix(op + ": codes", out.codes, {DType::u8});
  check_shape(op + ": codes", out.codes, {v.shape[1], blocks * QuantizedValues::kKeys});
  check_matrix(op + ": scales", out.scales, {DType::f32});
  check_shape(op + ": scales", out.scales, {heads, blocks});
  run_op(op_observer_, "quantize", {v, out.codes, out.scales},
         [&] { do_quantize_values(v, heads, out); });
}

void Backend::attention(const AttentionArgs& args) {
  if (args.is_int8()) {
    check_matrix("attention: q", args.q, {DType::i8});
    check_float("attention: out", args.out);
  } else {
    check_float("attention: q", args.q);
    check_matrix("attention: out", args.out, {args.q.dtype});
  }
  check_matrix("attention: k", args.k, {args.q.dtype});
  const int64_t blocks = ceil_div(args.keys(), QuantizedValues::kKeys);
  if (args.is_int8() && args.has_int8_values()) {
    check_matrix("attention: v", args.v, {DType::u8});
    const Shape expected{args.k.shape[1], blocks * QuantizedValues::kKeys};
    check(args.v.shape == expected, "attention: v is {}, expected {} of codes", args.v.shape,
          expected);
  } else {
    check_matrix("attention: v", args.v, {args.out.dtype});
    check(args.v.shape == args.k.shape, "attention: v is {}, expected the shape {} of k",
          args.v.shape, args.k.shape);
  }
  check(args.out.shape == args.q.shape, "attention: out is {}, expected the shape {} of q",
        args.out.shape, args.q.shape);
  check(args.heads > 0 && args.kv_heads > 0 && args.heads % args.kv_heads == 0,
        "attention: {} heads on {} of k and v, expected a multiple", args.heads, args.kv_heads);
  check(args.q.shape[1] % args.heads == 0, "attention: {} channels of q in {} heads",
        args.q.shape[1], args.heads);
  check(args.k.shape[1] == args.kv_heads * args.head_dim(),
        "attention: k has {} channels, expected {} heads of {}", args.k.shape[1], args.kv_heads,
        args.head_dim());
  check(args.keys() > 0 || args.rows() == 0, "attention: there are no keys for {} rows",
        args.rows());
  check(!args.causal || args.rows() == args.keys(),
        "attention: causal with {} rows and {} keys, expected as many", args.rows(), args.keys());
  if (args.is_int8()) {
    const auto check_scales = [](const char* what, const ConstTensorView& scales, int64_t heads,
                                 int64_t rows) {
      check_matrix(what, scales, {DType::f32});
      check(scales.shape == Shape({heads, rows}), "{}: {}, expected [{}, {}]", what, scales.shape,
            heads, rows);
    };
    check_scales("attention: q_scales", args.q_scales, args.heads, args.rows());
    check_scales("attention: k_scales", args.k_scales, args.kv_heads, args.keys());
    if (args.has_int8_values()) {
      check_scales("attention: v_scales", args.v_scales, args.kv_heads, blocks);
    }
  }
  if (args.q.shape.elements() == 0) return;
  const Observed observed(op_observer_, "attention");
  const std::string_view kernel = do_attention(args);
  const double pairs = static_cast<double>(args.rows()) * static_cast<double>(args.keys());
  // Half of them are the scores.
  OpWork work =
      multiplying((args.causal ? 2.0 : 4.0) * pairs * static_cast<double>(args.q.shape[1]),
                  {args.q, args.k, args.v, args.out, args.q_scales, args.k_scales, args.v_scales});
  if (args.is_int8()) {
    work.int8_operations = args.has_int8_values() ? work.operations : work.operations / 2;
  }
  observed.done(work, kernel, nullptr, &args);
}

void Backend::swiglu(const ConstTensorView& gate, const ConstTensorView& up,
                     const TensorView& out) {
  check_float("swiglu: gate", gate);
  check_like("swiglu: up", up, gate);
  check_like("swiglu: out", out, gate);
  run_op(op_observer_, "activation", {gate, up, out}, [&] { do_swiglu(gate, up, out); });
}

void Backend::activate(const ConstTensorView& x, Activation how, const TensorView& out) {
  check_float("activate: x", x);
  check_like("activate: out", out, x);
  run_op(op_observer_, "activation", {x, out}, [&] { do_activate(x, how, out); });
}

void Backend::add(const TensorView& h, const ConstTensorView& x) {
  check_float("add: h", h);
  check_like("add: x", x, h);
  run_op(op_observer_, "residual", {h, h, x}, [&] { do_add(h, x); });
}

// A matrix whose rows are all the same one.
void Backend::add_row(const TensorView& h, const ConstTensorView& row) {
  check_float("add_row: h", h);
  check_vector("add_row: row", row, h.shape[1], h.dtype);
  ConstTensorView rows = h;
  rows.data = row.data;
  rows.strides[0] = 0;
  run_op(op_observer_, "residual", {h, h}, [&] { do_add(h, rows); });
}

void Backend::add_gated(const TensorView& h, const ConstTensorView& x, const RowNorm& how,
                        const ConstTensorView& gate) {
  check_add_gated("add_gated", h, x, how, gate);
  run_op(op_observer_, "residual", {h, h, x}, [&] { do_add_gated(h, x, how, gate); });
}

void Backend::add_gated_norm_quantize(const TensorView& h, const ConstTensorView& x,
                                      const RowNorm& how, const ConstTensorView& gate,
                                      const RowNorm& next, const ActivationTransform& transform,
                                      const QTensor& out) {
  check_add_gated("add_gated_norm_quantize", h, x, how, gate);
  check_norm_quantize("add_gated_norm_quantize", h, next, transform, out);
  run_op(op_observer_, "residual", {h, h, x, out},
         [&] { do_add_gated_norm_quantize(h, x, how, gate, next, transform, out); });
}

void Backend::do_add_gated_norm_quantize(const TensorView& h, const ConstTensorView& x,
                                         const RowNorm& how, const ConstTensorView& gate,
                                         const RowNorm& next, const ActivationTransform& transform,
                                         const QTensor& out) {
  do_add_gated(h, x, how, gate);
  do_norm_quantize(h, next, transform, out);
}

void Backend::embed(const ConstTensorView& table, std::span<const int32_t> rows,
                    const TensorView& out) {
  check_float("embed: table", table);
  check_matrix("embed: out", out, {table.dtype});
  const auto count = static_cast<int64_t>(rows.size());
  check_shape("embed: out", out, {count, table.shape[1]});
  for (const int32_t row : rows) {
    check(row >= 0 && row < table.shape[0], "embed: row {} of a table with {} rows", row,
          table.shape[0]);
  }
  run_op(op_observer_, "embed", {out, out}, [&] { do_embed(table, rows, out); });
}

void Backend::sinusoids(std::span<const float> times, const ConstTensorView& frequencies,
                        const TensorView& out) {
  check_float("sinusoids: out", out);
  const auto count = static_cast<int64_t>(times.size());
  check(out.shape[0] == count && out.shape[1] % 2 == 0,
        "sinusoids: out is {}, expected {} rows of an even number of channels", out.shape, count);
  check_vector("sinusoids: frequencies", frequencies, out.shape[1] / 2);
  run_op(op_observer_, "embed", {out}, [&] { do_sinusoids(times, frequencies, out); });
}

void Backend::group_norm(const ConstTensorView& x, const GroupNorm& how, const TensorView& out) {
  check_float("group_norm: x", x);
  check_like("group_norm: out", out, x);
  check(how.groups > 0 && x.shape[1] % how.groups == 0, "group_norm: {} channels in {} groups",
        x.shape[1], how.groups);
  check(how.eps >= 0, "group_norm: eps is {}, expected 0 or more", how.eps);
  check_vector("group_norm: weight", how.weight, x.shape[1]);
  check_vector("group_norm: bias", how.bias, x.shape[1]);
  if (how.image != nullptr) {
    const GroupSums& image = *how.image;
    check(image.channels == x.shape[1] && image.dtype == x.dtype,
          "group_norm: x is {} with {} channels, and the image is {} with {}", name_of(x.dtype),
          x.shape[1], name_of(image.dtype), image.channels);
    check(image.added == image.rows,
          "group_norm: {} of the {} rows of the image were added, expected all", image.added,
          image.rows);
  }
  run_op(op_observer_, "norm", {x, out}, [&] { do_group_norm(x, how, out); });
}

GroupSums Backend::begin_group_sums(DType dtype, int64_t rows, int64_t channels) {
  check((dtype == DType::f32 || dtype == DType::bf16) && rows >= 0 && channels >= 0,
        "group sums: of a {} image of {} rows with {} channels, expected F32 or BF16",
        name_of(dtype), rows, channels);
  GroupSums sums{.dtype = dtype, .rows = rows, .channels = channels};
  sums.memory = do_begin_group_sums(sums);
  return sums;
}

void Backend::add_group_sums(GroupSums& sums, const ConstTensorView& x) {
  check_matrix("group sums: x", x, {sums.dtype});
  check(x.shape[1] == sums.channels && x.shape[0] <= sums.rows - sums.added,
        "group sums: x is {}, expected {} channels and at most {} rows, the rest of the image",
        x.shape, sums.channels, sums.rows - sums.added);
  run_op(op_observer_, "norm", {x}, [&] { do_add_group_sums(sums, x); });
  sums.added += x.shape[0];
}

void Backend::conv2d(const ConvArgs& args) {
  check_float("conv2d: x", args.x);
  check_matrix("conv2d: weight", args.weight, {args.x.dtype});
  check_matrix("conv2d: out", args.out, {args.x.dtype});
  check(args.kernel == 1 || args.kernel == 3, "conv2d: the kernel is {0} x {0}, expected 1 or 3",
        args.kernel);
  check(!args.doubled || (args.kernel == 3 && args.height % 2 == 0 && args.width % 2 == 0),
        "conv2d: x would be doubled to {} x {} pixels for a kernel of {}, expected even sides and "
        "a kernel of 3",
        args.height, args.width, args.kernel);
  const int64_t height = args.doubled ? args.height / 2 : args.height,
                width = args.doubled ? args.width / 2 : args.width;
  check(height >= 0 && width >= 0 && (args.strip || args.x.shape[0] == height * width),
        "conv2d: x has {} rows, expected {} x {} pixels", args.x.shape[0], height, width);
  check(args.weight.shape[1] == args.kernel * args.kernel * args.channels(),
        "conv2d: weight is {}, expected {} x {} taps of {} channels in a row", args.weight.shape,
        args.kernel, args.kernel, args.channels());
  const int64_t made = args.strip ? args.out.shape[0] : args.height * args.width;
  check_shape("conv2d: out", args.out, {made, args.out_channels()});
  if (args.strip) check_strip(args);
  check_vector("conv2d: bias", args.bias, args.out_channels(), args.x.dtype);
  if (args.out.shape.elements() == 0) return;
  const Observed observed(op_observer_, "convolution");
  do_conv2d(args);
  const double sums = static_cast<double>(args.out.shape.elements());
  observed.done(multiplying(2.0 * sums * static_cast<double>(args.weight.shape[1]),
                            {args.x, args.weight, args.out}));
}

void Backend::euler_step(const EulerStep& step) {
  check(step.count >= 1 && step.count <= kMostBranches, "euler_step: {} branches, expected 1 to {}",
        step.count, kMostBranches);
  const ConstTensorView& first = step.branches[0].velocity;
  check_float("euler_step: the velocity of branch 1", first);
  for (size_t i = 1; i < step.count; ++i) {
    check_like(fmt::format("euler_step: the velocity of branch {}", i + 1).c_str(),
               step.branches[i].velocity, first);
  }
  if (step.rounds()) check_like("euler_step: rounded", step.rounded, first);
  for (const TensorView* wide : {&step.z, &step.velocity}) {
    check_matrix("euler_step: z and velocity", *wide, {DType::f32});
    check_shape("euler_step: z or velocity", *wide, first.shape);
  }
  check_vector("euler_step: overflow", step.overflow, 1, DType::i32);
  const auto& [a, b, c, d] = step.branches;
  run_op(
      op_observer_, "sampling",
      {step.z, step.z, a.velocity, b.velocity, c.velocity, d.velocity, step.velocity, step.rounded},
      [&] { do_euler_step(step); });
}

}  // namespace octet
