#include "cuda/cuda_backend.h"

#include <iterator>
#include <optional>

#include "backend/gemm_tuning.h"
#include "base/checked.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "cuda/attention/attention.h"
#include "cuda/check.h"
#include "cuda/device.h"
#include "cuda/event.h"
#include "cuda/gemm/borrow.h"
#include "cuda/gemm/ceiling.h"
#include "cuda/gemm/chooser.h"
#include "cuda/gemm/launcher.h"
#include "cuda/gemm/pack.h"
#include "cuda/graph_recording.h"
#include "cuda/images/conv2d.h"
#include "cuda/images/image_kernels.h"
#include "cuda/marks.h"
#include "cuda/matmul/fp8_nf4_linear.h"
#include "cuda/matmul/matmul.h"
#include "cuda/nvml_gauge.h"
#include "cuda/plans.h"
#include "cuda/rows/head_kernels.h"
#include "cuda/rows/model_kernels.h"
#include "cuda/rows/norm_kernels.h"
#include "cuda/rows/row_kernels.h"
#include "cuda/uploads.h"
#include "tune/path_choice.h"

namespace octet {
namespace {

using namespace cuda;  // NOLINT: this file is its public face

class CudaBackend final : public Backend, private GemmTuning {
 public:
  explicit CudaBackend(const CudaOptions& options)
      : Backend(options.threads),
        device_(std::make_shared<Device>(options.device, static_cast<cudaStream_t>(options.stream),
                                         options.memory_limit)),
        uploads_(std::make_shared<Uploads>(device_)),
        launcher_(*device_),
        matmul_(*device_),
        attention_(*device_, matmul_, options.force_attention),
        marks_(*device_),
        chooser_(device_, launcher_, matmul_,
                 make_planner(device_->traits(), options.tune, options.refines),
                 options.force_kernel, options.refines) {
    const std::string reason = why_no_kernels(options.device);
    check(reason.empty(), "device cuda:{}: {}", options.device, reason);
    device_->set_scratch([this](size_t bytes) { return allocate(bytes); });
  }
  ~CudaBackend() override { device_->set_scratch({}); }  // buffers keep the device

  std::string name() const override { return fmt::format("cuda:{}", traits().index); }
  int threads() const override { return 1; }
  std::string description() const override {
    return fmt::format("{}, {} multiprocessors, sm_{}", traits().name, traits().multiprocessors,
                       traits().architecture());
  }

  void copy_to_device(std::byte* device, const std::byte* host, size_t bytes) override {
    device_->upload(device, host, bytes);
  }
  void copy_to_host(std::byte* host, const std::byte* device, size_t bytes) override {
    device_->download(host, device, bytes);
    uploads_->tidy_up();
  }
  void copy(std::byte* to, const std::byte* from, size_t bytes) override {
    if (bytes == 0) return;
    const Active active(traits().index);
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream()), "copying");
  }
  void synchronize() override {
    device_->synchronize();
    uploads_->tidy_up();
  }
  Buffer allocate_pinned(size_t bytes) override {
    return uploads_->allocate_pinned(bytes, &pool());
  }
  void copy_to_pinned(std::byte* pinned, const std::byte* device, size_t bytes) override {
    const Active active(traits().index);
    check_cuda(cudaMemcpyAsync(pinned, device, bytes, cudaMemcpyDeviceToHost, stream()),
               "downloading");
  }
  Transfer prefetch(std::byte* device, const std::byte* pinned, size_t bytes) override {
    return uploads_->prefetch(device, pinned, bytes, pool());
  }
  void wait(const Transfer& transfer) override { uploads_->wait(transfer); }
  int64_t waits() const override { return device_->waits(); }
  void limit_queue() override {
    const Active active(traits().index);
    if (device_->is_capturing()) return;
    std::optional<Event>& before_last = layers_[layer_++ % std::size(layers_)];
    if (!before_last) before_last.emplace();  // here, where this device is the current one
    if (!before_last->has_passed()) {
      before_last->synchronize();
      device_->count_wait();
    }
    before_last->record(stream());
  }
  void refine(double seconds) override {
    const Active active(traits().index);
    chooser_.refine(seconds);
  }
  size_t mark() override { return marks_.mark(stream()); }
  size_t mark_copies() override { return marks_.mark(uploads_->behind_ops()); }
  double microseconds_between(size_t begin, size_t end) override {
    return marks_.microseconds_between(begin, end);
  }
  void forget_marks() override { marks_.forget(); }
  std::optional<uint64_t> free_memory() const override { return device_->free_memory(); }
  MemoryLimit memory_limit() const override { return device_->limit(); }
  void trim_memory() override {
    synchronize();       // lets go of what uploads have left,
    uploads_->finish();  // in the order of copies, and the pool counts it until it has seen that
    device_->give_back_unused();
  }
  MemoryUse memory() const override { return device_->memory(); }
  void reset_peak() override { device_->reset_peak(); }

  GemmTuning& tuning() override { return *this; }

 protected:
  using View = ConstTensorView;

  Buffer do_allocate(size_t bytes) override { return device_->allocate(bytes); }
  std::unique_ptr<Recording> do_record(std::function<void()> work) override {
    return std::make_unique<GraphRecording>(*this, *device_, std::move(work));
  }

  GemmPlan plan_gemm(const GemmProblem& asked) override {
    const Active active(traits().index);
    check(asked.m > 0 && asked.n > 0, "plan_gemm: m={} n={}, expected both to be positive", asked.m,
          asked.n);
    GemmProblem problem = asked;
    problem.layout = kWeightLayout;
    return chooser_.plan(problem);
  }
  std::string plan_file() const override {
    return chooser_.is_forced() ? "" : tune::default_plan_path(plan_header(traits())).string();
  }

  std::vector<GemmPeer> gemm_peers() override {
    if (!CublasLt::unavailable().empty()) return {};
    return {{"cublaslt_int8", [this](const QTensor& a, const QTensor& w, const TensorView& out) {
               multiply_and_dequantize(a, w, out);
             }}};
  }

  std::vector<LinearPeer> linear_peers(const ConstTensorView& weight, int64_t rows) override {
    return make_linear_peers(*device_, matmul_, weight, rows);
  }
  bool keep_references(const GemmProblem& asked,
                       const std::map<std::string, double>& reference_us) override {
    if (chooser_.is_forced()) return false;
    GemmProblem problem = asked;
    problem.layout = kWeightLayout;
    return chooser_.planner().add_references(problem, reference_us);
  }
  bool is_faster_in_bf16(int64_t m, int64_t n, int64_t k) override {
    return !chooser_.is_forced() && tune::is_faster_in_bf16(chooser_.planner().known(), m, n, k);
  }

  double int8_ceiling() override { return ceiling(CeilingOf::int8); }
  double bf16_ceiling() override { return ceiling(CeilingOf::bf16); }
  std::unique_ptr<PowerGauge> power_gauge() override { return open_nvml_gauge(traits().index); }
  double time_us(const std::function<void()>& work) override { return device_->time_cold_us(work); }

  void do_quantize_rows(const ConstTensorView& x, const ActivationTransform& transform,
                        const QTensor& out) override {
    enqueue("quantize_rows", launch_quantize_rows, x, transform, out, processors());
  }
  void do_quantize_rows_searched(const ConstTensorView& x, const ActivationTransform& transform,
                                 std::span<const float> ratios, const QTensor& out) override {
    enqueue("quantize_rows_searched", launch_quantize_rows_searched, x, transform, ratios, out,
            processors());
  }
  void do_dequantize_rows(const QTensor& q, const TensorView& out) override {
    enqueue("dequantize_rows", launch_dequantize_rows, q, out, processors());
  }

  void do_convert(const ConstTensorView& x, const TensorView& out,
                  const ConstTensorView& row_scale) override {
    enqueue("convert", launch_convert, x, out, row_scale.as<float>(), processors());
  }
  Buffer do_upload(size_t bytes, const Fill& fill, ThreadPool* pool, size_t granule) override {
    return uploads_->upload(bytes, fill, pool, granule);
  }

  size_t packed_weight_bytes(int64_t n, int64_t k) const override {
    return static_cast<size_t>(packed_bytes(n, k)) + scale_bytes(n);
  }
  void do_begin_pack(QWeight& weight) override {
    const Active active(traits().index);
    weight.layout = kWeightLayout;
    const auto [n, k] = std::pair(weight.n, weight.k);
    const auto bytes = static_cast<size_t>(packed_bytes(n, k));
    weight.values = allocate(bytes);
    // Clears what no row is copied to: the bytes after the last row, or everything if k is 0 or
    // places between blocks stay empty.
    const bool has_gaps = k == 0 || n != packed_rows(n);
    const size_t cleared = has_gaps ? bytes : static_cast<size_t>(kReadPast);
    check_cuda(cudaMemsetAsync(weight.values.data() + bytes - cleared, 0, cleared, stream()),
               "clearing");
    weight.col_scale = allocate(scale_bytes(n));
    check_cuda(cudaMemsetAsync(weight.col_scale.data(), 0, weight.col_scale.bytes(), stream()),
               "clearing");
  }
  void do_pack_rows(QWeight& weight, int64_t first, const QTensor& rows,
                    const ConstTensorView& factors) override {
    const PackTarget to{.values = reinterpret_cast<int8_t*>(weight.values.data()),
                        .col_scale = reinterpret_cast<float*>(weight.col_scale.data()),
                        .n = weight.n,
                        .k = weight.k,
                        .first = first,
                        .gated = weight.gated};
    enqueue("packing a weight", launch_pack_rows, rows.values, rows.scales.as<float>(),
            factors.as<float>(), to);
  }

  QWeight do_borrow(const PlainWeight& weight) override {
    const Active active(traits().index);
    return borrow_weight(*device_, weight);
  }
  void do_visit(Caller* caller) override { device_->visit(caller); }

  void do_prepare_gemm(const GemmProblem& problem) override {
    check(problem.layout == kWeightLayout || problem.layout == kPlainLayout,
          "gemm: cuda needs a weight packed as {}, got {}; pack it with this backend",
          kWeightLayout, problem.layout);
    const Active active(traits().index);
    chooser_.choose(problem);
  }

  std::string_view do_gemm(const GemmProblem& problem, const GemmArgs& args) override {
    const Active active(traits().index);
    const GemmCandidate& candidate = chooser_.choose(problem);
    launcher_.launch(candidate, problem, GemmOperands::from(args));
    return candidate.name;
  }

  void do_matmul(const View& a, const View& b, const TensorView& out, const View& bias) override {
    const Active active(traits().index);
    matmul_.run(a, b, out, bias);
  }
  void do_norm(const View& x, const RowNorm& how, const TensorView& out) override {
    enqueue("norm", launch_norm, x, how, out, processors());
  }
  void do_norm_quantize(const View& x, const RowNorm& how, const ActivationTransform& transform,
                        const QTensor& out) override {
    enqueue("norm_quantize", launch_norm_quantize, x, how, transform, out, processors());
  }
  void do_rotate_heads(const TensorView& x, const HeadRotation& how) override {
    enqueue("rotate_heads", launch_rotate_heads, x, how, processors());
  }
  void do_rotate_quantize_heads(const View& x, const HeadRotation& how, const View& mean,
                                const QuantizedHeads& out) override {
    enqueue("rotate_quantize_heads", launch_rotate_quantize_heads, x, how, mean, out, processors());
  }
  void do_rotated_head_mean(const View& x, const HeadRotation& how,
                            const TensorView& mean) override {
    const Buffer scratch = allocate(head_mean_scratch_bytes(x));
    enqueue("rotated_head_mean", launch_rotated_head_mean, x, how, mean.as<float>(),
            reinterpret_cast<float*>(scratch.data()));
  }
  void do_quantize_values(const View& v, int64_t heads, const QuantizedValues& out) override {
    enqueue("quantize_values", launch_quantize_values, v, heads, out);
  }
  std::string why_no_int8_attention(int64_t head_dim, DType results) const override {
    return attention_.why_no_int8(head_dim, results, false);
  }
  std::string why_no_int8_values(int64_t head_dim, DType results) const override {
    return attention_.why_no_int8(head_dim, results, true);
  }
  std::string_view do_attention(const AttentionArgs& args) override {
    const Active active(traits().index);
    return attention_.run(args);
  }
  void do_swiglu(const View& gate, const View& up, const TensorView& out) override {
    enqueue("swiglu", launch_swiglu, gate, up, out, processors());
  }
  void do_activate(const View& x, Activation how, const TensorView& out) override {
    enqueue("activate", launch_activate, x, how, out, processors());
  }
  void do_add(const TensorView& h, const View& x) override {
    enqueue("add", launch_add, h, x, processors());
  }
  void do_add_gated(const TensorView& h, const View& x, const RowNorm& how,
                    const View& gate) override {
    enqueue("add_gated", launch_add_gated, h, x, how, gate, processors());
  }
  void do_add_gated_norm_quantize(const TensorView& h, const View& x, const RowNorm& how,
                                  const View& gate, const RowNorm& next,
                                  const ActivationTransform& transform,
                                  const QTensor& out) override {
    enqueue("add_gated_norm_quantize", launch_add_gated_norm_quantize, h, x, how, gate, next,
            transform, out, processors());
  }
  // What is needed only during an op comes from the pool, whose releases are in order, too.
  void do_embed(const View& table, std::span<const int32_t> rows, const TensorView& out) override {
    const Buffer on_device = allocate(rows.size_bytes());
    device_->upload(on_device.data(), std::as_bytes(rows).data(), rows.size_bytes());
    const auto* ids = reinterpret_cast<const int32_t*>(on_device.data());
    enqueue("embed", launch_embed, table, ids, out, processors());
  }
  void do_sinusoids(std::span<const float> times, const View& frequencies,
                    const TensorView& out) override {
    enqueue("sinusoids", launch_sinusoids, times, frequencies, out);
  }
  void do_group_norm(const View& x, const GroupNorm& how, const TensorView& out) override {
    const Buffer scratch = allocate(group_norm_scratch_bytes(x, how, processors()));
    enqueue("group_norm", launch_group_norm, x, how, out, scratch.data(), processors());
  }
  Buffer do_begin_group_sums(const GroupSums& sums) override {
    return allocate(group_sums_bytes(sums, processors()));
  }
  void do_add_group_sums(const GroupSums& sums, const View& x) override {
    enqueue("group_sums", launch_group_sums, sums, x, processors());
  }
  void do_conv2d(const ConvArgs& args) override {
    const Active active(traits().index);
    cuda::conv2d(*device_, matmul_, args);
  }
  void do_euler_step(const EulerStep& step) override {
    enqueue("euler_step", launch_euler_step, step, processors());
  }

 private:
  const DeviceTraits& traits() const { return device_->traits(); }
  cudaStream_t stream() const { return device_->stream(); }

  int processors() const { return traits().multiprocessors; }

  double ceiling(CeilingOf what) {
    const Active active(traits().index);
    constexpr int kRepeats = 12'000;  // some milliseconds on any GPU
    if (!sink_) sink_ = device_->allocate(sizeof(int));
    const bool hopper = traits().architecture() == 90 && gemm_rows().front().hopper;
    double operations = 0;
    const double us = device_->time_us([&] {
      operations = launch_ceiling(what, hopper, traits().multiprocessors, kRepeats,
                                  reinterpret_cast<int*>(sink_.data()), stream());
    });
    check_launch("measuring the ceiling");
    return operations / us * 1e6;
  }

  // Calls a launcher, whose last argument is the stream.
  template <class Launch, class... Args>
  void enqueue(const char* what, Launch launch, const Args&... args) {
    const Active active(traits().index);
    launch(args..., stream());
    check_launch(what);
  }

  // The GEMM of the library, which leaves its accumulators in memory, and a pass over them.
  void multiply_and_dequantize(const QTensor& a, const QTensor& w, const TensorView& out) {
    const Active active(traits().index);
    const int64_t m = a.rows(), n = w.rows();
    const size_t bytes = bytes_of(DType::i32, {m, n});
    if (peer_acc_.bytes() < bytes) peer_acc_ = allocate(bytes);
    const TensorView acc(peer_acc_.data(), DType::i32, {m, n});
    CublasLt* lt = matmul_.library();
    check(lt != nullptr && lt->matmul(a.values, w.values, acc),
          "cublasLt has no INT8 algorithm for m={} n={} k={}", m, n, a.k());
    launch_dequantize_accumulators(acc.as<int32_t>(), a.scales.as<float>(), w.scales.as<float>(),
                                   nullptr, out, traits().multiprocessors, stream());
    check_launch("dequantizing accumulators");
  }

  std::shared_ptr<Device> device_;
  std::shared_ptr<Uploads> uploads_;
  GemmLauncher launcher_;
  Matmul matmul_;
  Attention attention_;
  Marks marks_;
  std::optional<Event> layers_[2];  // their beginnings, see limit_queue()
  size_t layer_ = 0;
  GemmChooser chooser_;
  Buffer sink_, peer_acc_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options) {
  return std::make_unique<CudaBackend>(options);
}

}  // namespace octet
