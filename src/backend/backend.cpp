#include "backend/backend.h"

#include "backend/argument_checks.h"
#include "backend/op_work.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/thread_pool.h"

namespace octet {
namespace {

// `x` and `out` name them in sentences: putting these together would cost more than the checks.
void check_quantizing(std::string_view what, std::string_view x_name, std::string_view out_name,
                      const ConstTensorView& x, const ActivationTransform& transform,
                      const QTensor& out) {
  check_matrix(x_name, x, {DType::f32, DType::bf16, DType::f16});
  check_quantized(out_name, out);
  check(out.values.shape == x.shape, "{}: out is {}, expected the shape {} of x", what,
        out.values.shape, x.shape);
  check_transform(what, transform, x.shape[1]);
  check(!transform.stepwise || x.shape[1] <= kMaxStepwiseK,
        "{}: k={} could overflow the int32 sum of stepwise codes; the largest k is {}", what,
        x.shape[1], kMaxStepwiseK);
}

}  // namespace

Backend::Backend(int threads) : pool_threads_(threads), trace_gemm_(env::trace("gemm")) {}

Backend::~Backend() = default;

ThreadPool& Backend::pool() {
  const std::lock_guard lock(pool_mutex_);
  if (!pool_) pool_ = std::make_unique<ThreadPool>(pool_threads_);
  return *pool_;
}

Buffer Backend::allocate(size_t bytes) {
  if (work_memory_ == nullptr) return do_allocate(bytes);
  return work_memory_->allocate(bytes, [this](size_t fresh) { return do_allocate(fresh); });
}

std::shared_ptr<Buffer> Backend::work_block(size_t bytes) {
  std::shared_ptr<Buffer> block = work_block_.lock();
  if (block == nullptr || block->bytes() < bytes) {
    block = std::make_shared<Buffer>(do_allocate(bytes));
    work_block_ = block;
  }
  return block;
}

void Backend::unrecorded(const std::function<void()>& work) {
  if (interruption_ != nullptr) return (*interruption_)(work);
  WorkMemory* const of_recording = std::exchange(work_memory_, nullptr);
  try {
    work();
  } catch (...) {
    work_memory_ = of_recording;
    throw;
  }
  work_memory_ = of_recording;
}

void Backend::quantize_rows(const ConstTensorView& x, const ActivationTransform& transform,
                            const QTensor& out) {
  check_quantizing("quantize_rows", "quantize_rows: x", "quantize_rows: out", x, transform, out);
  const Observed observed(op_observer_, "quantize");
  do_quantize_rows(x, transform, out);
  observed.done(moving({x, out}));
}

void Backend::quantize_rows_searched(const ConstTensorView& x, const ActivationTransform& transform,
                                     std::span<const float> ratios, const QTensor& out) {
  check_quantizing("quantize_rows_searched", "quantize_rows_searched: x",
                   "quantize_rows_searched: out", x, transform, out);
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
  observed.done(moving({x, out}));
}

void Backend::dequantize_rows(const QTensor& q, const TensorView& out) {
  check_quantized("dequantize_rows: q", q);
  check_matrix("dequantize_rows: out", out, {DType::f32, DType::bf16, DType::f16});
  check(out.shape == q.values.shape, "dequantize_rows: out is {}, expected the shape {} of q",
        out.shape, q.values.shape);
  do_dequantize_rows(q, out);
}

Visit::Visit(Backend& backend, Caller& caller) : backend_(backend) { backend.do_visit(&caller); }
Visit::~Visit() { backend_.do_visit(nullptr); }

std::string_view Backend::gemm(const GemmArgs& args, Fusion fusion) {
  const GemmProblem problem = describe_gemm(args, fusion);
  if (problem.m == 0 || problem.n == 0) return {};
  do_prepare_gemm(problem);
  const Observed observed(op_observer_, "gemm");
  const std::string_view kernel = do_gemm(problem, args);
  const double of_weight = static_cast<double>(problem.n) * static_cast<double>(problem.k);
  OpWork work = multiplying(2.0 * static_cast<double>(problem.m) * of_weight, {args.a, args.out});
  work.int8_operations = work.operations;
  work.bytes += of_weight;
  observed.done(work, kernel, &problem);
  if (trace_gemm_) log::trace("gemm {}: {}", problem.to_string(), kernel);
  return kernel;
}

void Backend::matmul(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out,
                     const ConstTensorView& bias) {
  check_matrix("matmul: a", a, {DType::f32, DType::bf16});
  check_matrix("matmul: b", b, {DType::f32, DType::bf16});
  check_matrix("matmul: out", out, {DType::f32, DType::bf16, DType::f16});
  check(a.dtype == b.dtype, "matmul: a is {} and b is {}, expected one type", name_of(a.dtype),
        name_of(b.dtype));
  check(a.shape[1] == b.shape[1], "matmul: a has k={}, but b has k={}", a.shape[1], b.shape[1]);
  check_shape("matmul: out", out, {a.shape[0], b.shape[0]});
  if (bias.data != nullptr) check_vector("matmul: bias", bias, b.shape[0], out.dtype);
  if (out.shape.elements() == 0) return;
  const Observed observed(op_observer_, "matmul");
  do_matmul(a, b, out, bias);
  const double sums = static_cast<double>(out.shape.elements());
  observed.done(multiplying(2.0 * sums * static_cast<double>(a.shape[1]), {a, b, out}));
}

}  // namespace octet
