#include "backend/backend.h"

#include <cstring>
#include <vector>

#include "backend/argument_checks.h"
#include "base/checked.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"

namespace octet {
namespace {

// Zeros follow up to a multiple of eight floats: kernels read whole vectors.
Buffer upload_vector(Backend& backend, const ConstTensorView& vector) {
  const auto* values = vector.as<float>();
  std::vector<float> padded(values, values + vector.shape[0]);
  padded.resize(static_cast<size_t>(round_up(vector.shape[0], 8)));
  const size_t bytes = padded.size() * sizeof(float);
  Buffer buffer = backend.allocate(bytes);
  backend.copy_to_device(buffer.data(), reinterpret_cast<const std::byte*>(padded.data()), bytes);
  return buffer;
}

// A host copy of a weight whose gate rows are followed by its up rows, with the two alternating.
struct Alternated {
  Buffer values, scales;
  QTensor weight;

  explicit Alternated(const QTensor& halves)
      : values(allocate_host(static_cast<size_t>(halves.rows() * halves.k()))),
        scales(allocate_host(static_cast<size_t>(halves.rows()) * sizeof(float))),
        weight{values.view(DType::i8, halves.values.shape),
               scales.view(DType::f32, halves.scales.shape)} {
    const int64_t half = halves.rows() / 2;
    for (int64_t row = 0; row < 2 * half; ++row) {
      const int64_t from = row % 2 * half + row / 2;
      weight.scales.as<float>()[row] = halves.scales.as<float>()[from];
      if (halves.k() == 0) continue;
      std::memcpy(weight.values.row<int8_t>(row), halves.values.row<int8_t>(from),
                  static_cast<size_t>(halves.k()));
    }
  }
};

void check_quantizing(const std::string& what, const ConstTensorView& x,
                      const ActivationTransform& transform, const QTensor& out) {
  check_matrix(what + ": x", x, {DType::f32, DType::bf16, DType::f16});
  check_quantized(what + ": out", out);
  check(out.values.shape == x.shape, "{}: out is {}, expected the shape {} of x", what,
        out.values.shape.to_string(), x.shape.to_string());
  check_transform(what, transform, x.shape[1]);
}

}  // namespace

Backend::Backend() : trace_gemm_(env::trace("gemm")) {}

void Backend::quantize_rows(const ConstTensorView& x, const ActivationTransform& transform,
                            const QTensor& out) {
  check_quantizing("quantize_rows", x, transform, out);
  const Observed observed(op_observer_, "quantize");
  do_quantize_rows(x, transform, out);
  observed.done();
}

void Backend::quantize_rows_searched(const ConstTensorView& x, const ActivationTransform& transform,
                                     std::span<const float> ratios, const QTensor& out) {
  check_quantizing("quantize_rows_searched", x, transform, out);
  check(x.shape[1] <= kMaxK, "quantize_rows_searched: k={}, but a weight's k is at most {}",
        x.shape[1], kMaxK);
  check(!ratios.empty() && ratios.size() <= kMaxClipRatios,
        "quantize_rows_searched: {} ratios, expected 1 to {}", ratios.size(), kMaxClipRatios);
  check(ratios[0] == 1.0f, "quantize_rows_searched: the first ratio is {}, expected 1", ratios[0]);
  for (const float ratio : ratios) {
    check(ratio >= kMinClipRatio && ratio <= 1.0f,
          "quantize_rows_searched: a ratio is {}, expected all from {} to 1", ratio, kMinClipRatio);
  }
  const Observed observed(op_observer_, "quantize");
  do_quantize_rows_searched(x, transform, ratios, out);
  observed.done();
}

void Backend::dequantize_rows(const QTensor& q, const TensorView& out) {
  check_quantized("dequantize_rows: q", q);
  check_matrix("dequantize_rows: out", out, {DType::f32, DType::bf16, DType::f16});
  check(out.shape == q.values.shape, "dequantize_rows: out is {}, expected the shape {} of q",
        out.shape.to_string(), q.values.shape.to_string());
  do_dequantize_rows(q, out);
}

QWeight Backend::pack(const QTensor& weight, const ConstTensorView& bias,
                      const ActivationTransform& transform, RowOrder order) {
  check_quantized("pack: weight", weight);
  if (order == RowOrder::gate_up) {
    check(weight.rows() % 2 == 0,
          "pack: a gate_up weight has n={}, expected an even n: the gate's rows, then as many of "
          "the up projection",
          weight.rows());
    check(bias.data == nullptr, "pack: a gate_up weight takes no bias, got {}; leave it out",
          bias.to_string());
    QWeight packed = pack(Alternated(weight).weight, bias, transform);
    packed.gated = true;
    return packed;
  }
  check_transform("pack", transform, weight.k());
  check(weight.k() <= kMaxK, "pack: k={} could overflow the int32 sum; the largest k is {}",
        weight.k(), kMaxK);
  QWeight packed;
  packed.n = weight.rows();
  packed.k = weight.k();
  packed.transform = transform;
  packed.col_scale = upload_vector(*this, weight.scales);
  if (bias.data != nullptr) {
    check_vector("pack: bias", bias, packed.n);
    packed.bias = upload_vector(*this, bias);
  }
  if (transform.kind == Transform::smooth) {
    packed.smooth = upload_vector(*this, transform.smooth);
    packed.transform.smooth = packed.smooth.view(DType::f32, {packed.k});
  }
  do_pack(weight, packed);
  return packed;
}

void Backend::gemm(const GemmArgs& args, Fusion fusion) {
  const GemmProblem problem = describe_gemm(args, fusion);
  if (problem.m == 0 || problem.n == 0) return;
  do_prepare_gemm(problem);
  const Observed observed(op_observer_, "gemm");
  const std::string_view kernel = do_gemm(problem, args);
  observed.done(kernel, 2.0 * static_cast<double>(problem.m) * static_cast<double>(problem.n) *
                            static_cast<double>(problem.k));
  if (gemm_observer_) gemm_observer_(problem, kernel);
  if (trace_gemm_) log::trace("gemm {}: {}", problem.to_string(), kernel);
}

void Backend::matmul(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out,
                     const ConstTensorView& bias) {
  check_matrix("matmul: a", a, {DType::f32, DType::bf16});
  check_matrix("matmul: b", b, {DType::f32, DType::bf16});
  check_matrix("matmul: out", out, {DType::f32, DType::bf16, DType::f16});
  check(a.dtype == b.dtype, "matmul: a is {} and b is {}, expected one type", name_of(a.dtype),
        name_of(b.dtype));
  check(a.shape[1] == b.shape[1], "matmul: a has k={}, but b has k={}", a.shape[1], b.shape[1]);
  check(out.shape == Shape({a.shape[0], b.shape[0]}), "matmul: out is {}, expected [{}, {}]",
        out.shape.to_string(), a.shape[0], b.shape[0]);
  if (bias.data != nullptr) check_vector("matmul: bias", bias, b.shape[0], out.dtype);
  if (out.shape.elements() == 0) return;
  const Observed observed(op_observer_, "matmul");
  do_matmul(a, b, out, bias);
  observed.done({},
                2.0 * static_cast<double>(out.shape.elements()) * static_cast<double>(a.shape[1]));
}

}  // namespace octet
