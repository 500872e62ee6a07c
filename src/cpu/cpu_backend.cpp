#include "cpu/cpu_backend.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "backend/host_backend.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/invalid_request.h"
#include "base/stopwatch.h"
#include "base/thread_pool.h"
#include "cpu/cpu_features.h"
#include "cpu/gemm/driver.h"
#include "cpu/gemm/pack.h"
#include "cpu/gemm/table.h"
#include "cpu/matmul/matmul.h"
#include "cpu/ops/ops.h"
#include "cpu/rows/row_ops.h"

namespace octet {
namespace {

class CpuBackend final : public HostBackend {
 public:
  explicit CpuBackend(const CpuOptions& options)
      : HostBackend(options.threads),
        kernel_(cpu::select_micro_kernel(options.force_kernel)),
        layout_(cpu::weight_layout(kernel_)),
        rows_(cpu::row_ops(kernel_.simd)) {
    if (options.force_matmul.empty()) return;
    forced_matmul_ = &cpu::matmul_kernel_named(options.force_matmul, cpu::cpu_features());
  }

  std::string name() const override { return "cpu"; }
  int threads() const override { return pool_.threads(); }
  std::string description() const override {
    return fmt::format("{}, {} thread{}, {}", cpu::cpu_model(), pool_.threads(),
                       pool_.threads() == 1 ? "" : "s", kernel_.name);
  }

  Sentence why_not_native_int8() const override {
    if (kernel_.simd != cpu::Simd::scalar) return "";
    return fmt::format("the kernel {} is portable C++, for CPUs without int8 instructions",
                       kernel_.name);
  }

  void copy(std::byte* to, const std::byte* from, size_t bytes) override {
    constexpr int64_t kChunk = int64_t{1} << 20;
    const auto total = static_cast<int64_t>(bytes);
    pool_.run(ceil_div(total, kChunk), [&](int64_t chunk, int) {
      const int64_t at = chunk * kChunk;
      std::memcpy(to + at, from + at, static_cast<size_t>(std::min(kChunk, total - at)));
    });
  }

 protected:
  GemmPlan plan_gemm(const GemmProblem&) override { return {.kernel = kernel_.name}; }

  // All threads spin at once, since cores share power and sometimes multiply units.
  double int8_ceiling() override {
    constexpr double kMicroseconds = 5'000;
    std::atomic<int64_t> operations{0};
    std::atomic<int> waiting{pool_.threads()};
    std::atomic<double> begin{0};
    const Stopwatch watch;
    pool_.run(pool_.threads(), [&](int64_t, int) {
      // Each thread takes one task and waits for the others: a thread that wakes up late must not
      // leave its share to one that is already done. The clock starts with the last of them.
      begin = watch.microseconds();
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      while (watch.microseconds() - begin < kMicroseconds) operations += kernel_.spin(1'000);
    });
    return static_cast<double>(operations) / (watch.microseconds() - begin) * 1e6;
  }

  void do_quantize_rows(const ConstTensorView& x, const ActivationTransform& transform,
                        const QTensor& out) override {
    cpu::quantize_rows(workers_, x, transform, out);
  }

  void do_quantize_rows_searched(const ConstTensorView& x, const ActivationTransform& transform,
                                 std::span<const float> ratios, const QTensor& out) override {
    cpu::quantize_rows_searched(workers_, x, transform, ratios, out);
  }

  void do_dequantize_rows(const QTensor& q, const TensorView& out) override {
    cpu::dequantize_rows(workers_, q, out);
  }

  void do_convert(const ConstTensorView& x, const TensorView& out,
                  const ConstTensorView& row_scale) override {
    cpu::convert(workers_, x, out, row_scale);
  }

  size_t packed_weight_bytes(int64_t n, int64_t k) const override {
    return static_cast<size_t>(cpu::weight_bytes(kernel_, n, k)) + scale_bytes(n);
  }
  void do_begin_pack(QWeight& weight) override {
    weight.layout = layout_;
    weight.values = allocate(static_cast<size_t>(cpu::weight_bytes(kernel_, weight.n, weight.k)));
    cpu::clear_padding(kernel_, weight);
    begin_scales(weight);
  }

  // By panels, not by rows: the rows of a panel share cache lines.
  void do_pack_rows(QWeight& weight, int64_t first, const QTensor& rows,
                    const ConstTensorView& factors) override {
    const bool both_halves =
        weight.gated && first < weight.n / 2 && first + rows.rows() > weight.n / 2;
    const int64_t last = first + rows.rows() - 1;
    const int64_t begin = both_halves ? 0 : weight.channel_of(first) / kernel_.nr;
    const int64_t end = (both_halves ? weight.n - 1 : weight.channel_of(last)) / kernel_.nr + 1;
    pool_.run(end - begin, [&](int64_t panel, int) {
      cpu::pack_weight_panel(kernel_, weight, first, rows.values, begin + panel);
    });
    pack_scales(weight, first, rows.scales, factors);
  }

  std::string_view do_gemm(const GemmProblem& problem, const GemmArgs& args) override {
    check(problem.layout == layout_, "gemm: {} needs a weight packed as {}, got {}; pack it again",
          kernel_.name, layout_, problem.layout);
    cpu::gemm(pool_, kernel_, problem, args, workspace_);
    return kernel_.name;
  }

  void do_matmul(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out,
                 const ConstTensorView& bias) override {
    cpu::matmul(pool_, matmul_kernel(a.dtype), a, b, out, bias);
  }
  void do_norm(const ConstTensorView& x, const RowNorm& how, const TensorView& out) override {
    cpu::norm(workers_, x, how, out);
  }
  void do_norm_quantize(const ConstTensorView& x, const RowNorm& how,
                        const ActivationTransform& transform, const QTensor& out) override {
    cpu::norm_quantize(workers_, x, how, transform, out);
  }
  void do_rotate_heads(const TensorView& x, const HeadRotation& how) override {
    cpu::rotate_heads(workers_, x, how);
  }
  void do_rotate_quantize_heads(const ConstTensorView& x, const HeadRotation& how,
                                const ConstTensorView& mean, const QuantizedHeads& out) override {
    cpu::rotate_quantize_heads(workers_, x, how, mean, out);
  }
  void do_rotated_head_mean(const ConstTensorView& x, const HeadRotation& how,
                            const TensorView& mean) override {
    cpu::rotated_head_mean(workers_, x, how, mean);
  }
  void do_quantize_values(const ConstTensorView& v, int64_t heads,
                          const QuantizedValues& out) override {
    cpu::quantize_values(workers_, v, heads, out);
  }
  std::string_view do_attention(const AttentionArgs& args) override {
    if (args.has_int8_values()) {
      cpu::attention_with_coded_values(workers_, args);
      return "attention_int8_full";
    }
    if (args.is_int8()) {
      cpu::attention_of_codes(workers_, matmul_kernel(DType::f32), args);
      return "attention_int8";
    }
    cpu::attention(workers_, matmul_kernel(args.q.dtype), args);
    return {};
  }
  void do_swiglu(const ConstTensorView& gate, const ConstTensorView& up,
                 const TensorView& out) override {
    cpu::swiglu(workers_, gate, up, out);
  }
  void do_activate(const ConstTensorView& x, Activation how, const TensorView& out) override {
    cpu::activate(workers_, x, how, out);
  }
  void do_add(const TensorView& h, const ConstTensorView& x) override { cpu::add(workers_, h, x); }
  void do_add_gated(const TensorView& h, const ConstTensorView& x, const RowNorm& how,
                    const ConstTensorView& gate) override {
    cpu::add_gated(workers_, h, x, how, gate);
  }
  void do_embed(const ConstTensorView& table, std::span<const int32_t> rows,
                const TensorView& out) override {
    cpu::embed(workers_, table, rows, out);
  }
  void do_sinusoids(std::span<const float> times, const ConstTensorView& frequencies,
                    const TensorView& out) override {
    cpu::sinusoids(times, frequencies, out);
  }
  void do_group_norm(const ConstTensorView& x, const GroupNorm& how,
                     const TensorView& out) override {
    cpu::group_norm(workers_, x, how, out);
  }
  Buffer do_begin_group_sums(const GroupSums& sums) override { return cpu::begin_group_sums(sums); }
  void do_add_group_sums(const GroupSums& sums, const ConstTensorView& x) override {
    cpu::add_group_sums(workers_, sums, x);
  }
  void do_conv2d(const ConvArgs& args) override {
    cpu::conv2d(workers_, matmul_kernel(args.x.dtype), args);
  }
  void do_euler_step(const EulerStep& step) override { cpu::euler_step(workers_, step); }

 private:
  const cpu::MatmulKernel& matmul_kernel(DType inputs) const {
    if (forced_matmul_ != nullptr && forced_matmul_->serves(inputs)) return *forced_matmul_;
    return cpu::choose_matmul_kernel(inputs, cpu::cpu_features());
  }

  const cpu::Int8MicroKernel& kernel_;
  std::string layout_;
  const cpu::RowOps& rows_;
  const cpu::MatmulKernel* forced_matmul_ = nullptr;
  ThreadPool& pool_ = pool();
  cpu::Workers workers_{pool_, rows_};
  cpu::GemmWorkspace workspace_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options) {
  check_value(options.threads >= 0 && options.threads <= most_threads(), "threads",
              "cpu: {} threads, expected 1 to {}, or 0 for one per physical core", options.threads,
              most_threads());
  return std::make_unique<CpuBackend>(options);
}

}  // namespace octet
