// A device that only counts: its memory is addresses with nothing behind them, and its ops check
// their arguments and do nothing. Whatever runs on it takes the memory that it would take, in
// microseconds, whoever's model it is.
//
// It does not see what the ops of a real device take for themselves.
#pragma once

#include "backend/host_backend.h"

namespace octet {

class CountingBackend final : public HostBackend {
 public:
  CountingBackend() : HostBackend(1) {}
  std::string name() const override { return "counting"; }
  std::string description() const override { return "memory that is only counted"; }
  int threads() const override { return 1; }
  void copy_to_device(std::byte*, const std::byte*, size_t) override {}
  // Zeros: numbers that any reader accepts.
  void copy_to_host(std::byte* host, const std::byte*, size_t bytes) override {
    if (bytes > 0) std::memset(host, 0, bytes);
  }
  void copy(std::byte*, const std::byte*, size_t) override {}
  bool keeps_values() const override { return false; }
  size_t packed_weight_bytes(int64_t n, int64_t k) const override {
    return static_cast<size_t>(n * k) + scale_bytes(n);
  }

 protected:
  using View = ConstTensorView;
  using Change = ActivationTransform;

  Buffer do_allocate(size_t bytes) override {
    constexpr size_t kStep = 256;
    auto* at = reinterpret_cast<std::byte*>(next_);
    next_ += (bytes / kStep + 1) * kStep;
    return counter_->count(Buffer(at, bytes, [](std::byte*) {}));
  }
  Buffer do_upload(size_t bytes, const Fill&, ThreadPool*, size_t) override {
    return allocate(bytes);
  }
  void do_begin_pack(QWeight& weight) override {
    weight.layout = "counted";
    weight.values = allocate(static_cast<size_t>(weight.n * weight.k));
    weight.col_scale = allocate(scale_bytes(weight.n));
  }
  GemmPlan plan_gemm(const GemmProblem&) override { return {}; }
  double int8_ceiling() override { return 0; }

  void do_quantize_rows(const View&, const Change&, const QTensor&) override {}
  void do_quantize_rows_searched(const View&, const Change&, std::span<const float>,
                                 const QTensor&) override {}
  void do_dequantize_rows(const QTensor&, const TensorView&) override {}
  void do_convert(const View&, const TensorView&, const View&) override {}
  void do_pack_rows(QWeight&, int64_t, const QTensor&, const View&) override {}
  std::string_view do_gemm(const GemmProblem&, const GemmArgs&) override { return {}; }
  void do_matmul(const View&, const View&, const TensorView&, const View&) override {}
  void do_norm(const View&, const RowNorm&, const TensorView&) override {}
  void do_norm_quantize(const View&, const RowNorm&, const Change&, const QTensor&) override {}
  void do_rotate_heads(const TensorView&, const HeadRotation&) override {}
  void do_rotate_quantize_heads(const View&, const HeadRotation&, const View&,
                                const QuantizedHeads&) override {}
  void do_rotated_head_mean(const View&, const HeadRotation&, const TensorView&) override {}
  void do_quantize_values(const View&, int64_t, const QuantizedValues&) override {}
  std::string_view do_attention(const AttentionArgs&) override { return {}; }
  void do_swiglu(const View&, const View&, const TensorView&) override {}
  void do_activate(const View&, Activation, const TensorView&) override {}
  void do_add(const TensorView&, const View&) override {}
  void do_add_gated(const TensorView&, const View&, const RowNorm&, const View&) override {}
  void do_embed(const View&, std::span<const int32_t>, const TensorView&) override {}
  void do_sinusoids(std::span<const float>, const View&, const TensorView&) override {}
  void do_group_norm(const View&, const GroupNorm&, const TensorView&) override {}
  Buffer do_begin_group_sums(const GroupSums&) override { return {}; }
  void do_add_group_sums(const GroupSums&, const View&) override {}
  void do_conv2d(const ConvArgs&) override {}
  void do_euler_step(const EulerStep&) override {}

 private:
  uintptr_t next_ = 4096;  // the address of the next allocation; none is ever given twice
};

}  // namespace octet
