#include "ref/ref_backend.h"

#include "backend/host_backend.h"
#include "base/error.h"
#include "ref/ops.h"

namespace octet {
namespace {

constexpr const char* kLayout = "ref_rows";  // int8 [n, k], a row per output channel

class RefBackend final : public HostBackend {
 public:
  using HostBackend::HostBackend;
  std::string name() const override { return "ref"; }
  int threads() const override { return 1; }
  std::string description() const override { return "plain loops on one CPU thread"; }

  Sentence why_not_native_int8() const override {
    return sentence("ref multiplies in plain loops; choose another `device`");
  }

 protected:
  GemmPlan plan_gemm(const GemmProblem&) override { return {.kernel = "ref"}; }
  double int8_ceiling() override { return 0; }

  void do_quantize_rows(const ConstTensorView& x, const ActivationTransform& transform,
                        const QTensor& out) override {
    ref::quantize_rows(x, transform, out);
  }

  void do_quantize_rows_searched(const ConstTensorView& x, const ActivationTransform& transform,
                                 std::span<const float> ratios, const QTensor& out) override {
    ref::quantize_rows_searched(x, transform, ratios, out);
  }

  void do_dequantize_rows(const QTensor& q, const TensorView& out) override {
    ref::dequantize_rows(q, out);
  }

  void do_convert(const ConstTensorView& x, const TensorView& out,
                  const ConstTensorView& row_scale) override {
    ref::convert(x, out, row_scale);
  }

  size_t packed_weight_bytes(int64_t n, int64_t k) const override {
    return static_cast<size_t>(n * k) + scale_bytes(n);
  }
  void do_begin_pack(QWeight& weight) override {
    weight.layout = kLayout;
    weight.values = allocate(static_cast<size_t>(weight.n * weight.k));
    begin_scales(weight);
  }

  void do_pack_rows(QWeight& weight, int64_t first, const QTensor& rows,
                    const ConstTensorView& factors) override {
    auto* to = reinterpret_cast<int8_t*>(weight.values.data());
    for (int64_t row = 0; row < rows.rows(); ++row) {
      const int8_t* from = rows.values.row<int8_t>(row);
      const int64_t channel = weight.channel_of(first + row);
      for (int64_t j = 0; j < weight.k; ++j) to[channel * weight.k + j] = from[j];
    }
    pack_scales(weight, first, rows.scales, factors);
  }

  std::string_view do_gemm(const GemmProblem& problem, const GemmArgs& args) override {
    check(problem.layout == kLayout,
          "gemm: ref cannot read a weight packed as {}; pack it with ref", problem.layout);
    ref::gemm(problem, args);
    return "ref";
  }

  void do_matmul(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out,
                 const ConstTensorView& bias) override {
    ref::matmul(a, b, out, bias);
  }
  void do_norm(const ConstTensorView& x, const RowNorm& how, const TensorView& out) override {
    ref::norm(x, how, out);
  }
  void do_norm_quantize(const ConstTensorView& x, const RowNorm& how,
                        const ActivationTransform& transform, const QTensor& out) override {
    ref::norm_quantize(x, how, transform, out);
  }
  void do_rotate_heads(const TensorView& x, const HeadRotation& how) override {
    ref::rotate_heads(x, how);
  }
  void do_rotate_quantize_heads(const ConstTensorView& x, const HeadRotation& how,
                                const ConstTensorView& mean, const QuantizedHeads& out) override {
    ref::rotate_quantize_heads(x, how, mean, out);
  }
  void do_rotated_head_mean(const ConstTensorView& x, const HeadRotation& how,
                            const TensorView& mean) override {
    ref::rotated_head_mean(x, how, mean);
  }
  void do_quantize_values(const ConstTensorView& v, int64_t heads,
                          const QuantizedValues& out) override {
    ref::quantize_values(v, heads, out);
  }
  std::string_view do_attention(const AttentionArgs& args) override {
    ref::attention(args);
    if (args.has_int8_values()) return "attention_int8_full";
    return args.is_int8() ? "attention_int8" : "";
  }
  void do_swiglu(const ConstTensorView& gate, const ConstTensorView& up,
                 const TensorView& out) override {
    ref::swiglu(gate, up, out);
  }
  void do_activate(const ConstTensorView& x, Activation how, const TensorView& out) override {
    ref::activate(x, how, out);
  }
  void do_add(const TensorView& h, const ConstTensorView& x) override { ref::add(h, x); }
  void do_add_gated(const TensorView& h, const ConstTensorView& x, const RowNorm& how,
                    const ConstTensorView& gate) override {
    ref::add_gated(h, x, how, gate);
  }
  void do_add_gated_norm_quantize(const TensorView& h, const ConstTensorView& x, const RowNorm& how,
                                  const ConstTensorView& gate, const RowNorm& next,
                                  const ActivationTransform& transform,
                                  const QTensor& out) override {
    ref::add_gated_norm_quantize(h, x, how, gate, next, transform, out);
  }
  void do_embed(const ConstTensorView& table, std::span<const int32_t> rows,
                const TensorView& out) override {
    ref::embed(table, rows, out);
  }
  void do_sinusoids(std::span<const float> times, const ConstTensorView& frequencies,
                    const TensorView& out) override {
    ref::sinusoids(times, frequencies, out);
  }
  void do_group_norm(const ConstTensorView& x, const GroupNorm& how,
                     const TensorView& out) override {
    ref::group_norm(x, how, out);
  }
  Buffer do_begin_group_sums(const GroupSums& sums) override {
    return allocate_host(bytes_of(sums.dtype, {sums.rows, sums.channels}));
  }
  void do_add_group_sums(const GroupSums& sums, const ConstTensorView& x) override {
    ref::add_group_sums(sums, x);
  }
  void do_conv2d(const ConvArgs& args) override { ref::conv2d(args); }
  void do_euler_step(const EulerStep& step) override { ref::euler_step(step); }
};

}  // namespace

std::unique_ptr<Backend> make_ref_backend(int threads) {
  return std::make_unique<RefBackend>(threads);
}

}  // namespace octet
