// THE interface: what a device can do. `ref` is its meaning in plain loops; `cpu` and `cuda` give
// the same results faster.
//
// Rules: outputs are views that the caller allocated and that overlap no input (ops that change a
// matrix in place say so); ops on one backend run in the order of the calls, and one backend is
// used by one thread at a time. The
// public functions check their arguments once, here, and throw Error with the values;
// implementations only see arguments that fit.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/gemm.h"
#include "backend/observer.h"
#include "backend/ops.h"
#include "tensor/quantized.h"
#include "tensor/tensor.h"

namespace octet {

// Told after each gemm which kernel ran: what tests and kernel reports are made of.
using GemmObserver = std::function<void(const GemmProblem&, std::string_view kernel)>;

class Backend {
 public:
  Backend();
  virtual ~Backend() = default;

  virtual std::string name() const = 0;         // "ref", "cpu", "cuda:0"
  virtual std::string description() const = 0;  // the device in words, for reports
  virtual int threads() const = 0;              // of the host that work for it

  // Memory. copy_to_device and copy_to_host move bytes between the host and this backend's memory,
  // copy within it; the two ranges do not overlap.
  virtual Buffer allocate(size_t bytes) = 0;
  virtual void copy_to_device(std::byte* device, const std::byte* host, size_t bytes) = 0;
  virtual void copy_to_host(std::byte* host, const std::byte* device, size_t bytes) = 0;
  virtual void copy(std::byte* to, const std::byte* from, size_t bytes) = 0;
  virtual void synchronize() = 0;

  // Microseconds that `work` takes on the device, without the time to launch it where the device
  // runs asynchronously.
  virtual double time_us(const std::function<void()>& work) = 0;

  // Row quantization: amax over the transformed row in f32, scale = amax / 127,
  // q = rint(x * (127 / amax)). A row that is all zero (or so small that 127 / amax overflows)
  // gives scale 0 and q 0; a row with a NaN or an infinity gives scale NaN and q 0.
  // x: F32, BF16 or F16 [rows, k].
  void quantize_rows(const ConstTensorView& x, const ActivationTransform& transform,
                     const QTensor& out);

  // quantize_rows() for weights, with a scale that is searched for: each row is quantized as if its
  // amax were amax * ratio, q = clamp(rint(x * (127 / limit)), -127, 127), for each of `ratios`,
  // and the codes with the smallest squared error are kept; of equal errors, the first. The error
  // is summed in integers, from residuals in 1/256 of a step, so that all backends choose the same.
  // ratios: 1 first, then others in [1/16, 1], 32 in all at most; {1} is quantize_rows().
  void quantize_rows_searched(const ConstTensorView& x, const ActivationTransform& transform,
                              std::span<const float> ratios, const QTensor& out);

  // out[i, j] = float(q) * scale[i], rounded to F32, BF16 or F16.
  void dequantize_rows(const QTensor& q, const TensorView& out);

  // Arranges a weight for this backend's kernels, once, at load. `weight` [n, k] with its scales
  // per output channel, `bias` F32 [n] or no data, and the transform are in host memory, and are
  // copied. A gate_up weight takes part in swiglu alone, and has no bias.
  QWeight pack(const QTensor& weight, const ConstTensorView& bias,
               const ActivationTransform& transform, RowOrder order = RowOrder::plain);

  // See gemm.h.
  void gemm(const GemmArgs& args, Fusion fusion);
  // The kernel that gemm() would run for a problem (its layout is filled in here), after measuring
  // where this backend was made to do so.
  virtual GemmPlan plan_gemm(const GemmProblem& problem) = 0;
  // The file in which measured plans are kept; empty when they are not.
  virtual std::string plan_file() const { return ""; }
  // What else this device offers for the same GEMM.
  virtual std::vector<GemmPeer> gemm_peers() { return {}; }
  void set_gemm_observer(GemmObserver observer) { gemm_observer_ = std::move(observer); }

  // Why gemm() does not run on an instruction that multiplies int8; empty where it does.
  virtual std::string why_not_native_int8() const { return ""; }

  // Integer operations per second that the multiply instruction of gemm() reaches when it works on
  // registers alone, at this moment: the ceiling of any gemm here. Takes a few milliseconds, so it
  // can be asked again and again between measurements while clocks and neighbours change. 0 where
  // it means nothing (ref).
  virtual double int8_ceiling() = 0;

  // Unquantized: out[m, n] = a [m, k] times b [n, k] transposed, plus bias [n] (of out's type, or
  // no data) in each row; a and b both F32 or both BF16, out F32, BF16 or F16, products summed in
  // f32 or wider, and one rounding of the whole.
  void matmul(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out,
              const ConstTensorView& bias = {});

  // The ops between the linears; see ops.h for what they compute.
  void norm(const ConstTensorView& x, const RowNorm& how, const TensorView& out);
  // quantize_rows() of the norm before it is rounded.
  void norm_quantize(const ConstTensorView& x, const RowNorm& how,
                     const ActivationTransform& transform, const QTensor& out);
  void rotate_heads(const TensorView& x, const HeadRotation& how);  // in place
  void attention(const AttentionArgs& args);
  // out = silu(gate) * up, with the silu of exact_silu.h, the same bits everywhere.
  void swiglu(const ConstTensorView& gate, const ConstTensorView& up, const TensorView& out);
  void activate(const ConstTensorView& x, Activation how, const TensorView& out);
  // h += x
  void add(const TensorView& h, const ConstTensorView& x);
  // h += tanh(gate [channels]) * norm(x)
  void add_gated(const TensorView& h, const ConstTensorView& x, const RowNorm& how,
                 const ConstTensorView& gate);
  // out[i] = table[rows[i]]
  void embed(const ConstTensorView& table, std::span<const int32_t> rows, const TensorView& out);
  // out[i] = sin(times[i] * frequencies), then cos of the same; frequencies F32 [channels / 2].
  void sinusoids(std::span<const float> times, const ConstTensorView& frequencies,
                 const TensorView& out);
  void group_norm(const ConstTensorView& x, const GroupNorm& how, const TensorView& out);
  void conv2d(const ConvArgs& args);
  // Each pixel of x [height * width, channels] becomes two by two of out.
  void upsample(const ConstTensorView& x, int64_t height, int64_t width, const TensorView& out);

  // Moments in the order of this backend's work, and the microseconds between two of them, for
  // which it waits. They cost little, and count until forget_marks().
  virtual size_t mark() = 0;
  virtual double microseconds_between(size_t begin, size_t end) = 0;
  virtual void forget_marks() = 0;
  void set_op_observer(OpObserver* observer) { op_observer_ = observer; }

  // Of allocate(): bytes in use, and the most since the last reset_peak().
  virtual MemoryUse memory() const = 0;
  virtual void reset_peak() = 0;

 protected:
  virtual void do_quantize_rows(const ConstTensorView& x, const ActivationTransform& transform,
                                const QTensor& out) = 0;
  virtual void do_quantize_rows_searched(const ConstTensorView& x,
                                         const ActivationTransform& transform,
                                         std::span<const float> ratios, const QTensor& out) = 0;
  virtual void do_dequantize_rows(const QTensor& q, const TensorView& out) = 0;
  // Fills layout and values; the rest of the weight is already there.
  virtual void do_pack(const QTensor& weight, QWeight& packed) = 0;
  // What a problem needs once, such as choosing its kernel by measuring: no part of its time.
  virtual void do_prepare_gemm(const GemmProblem&) {}
  // Returns the name of the kernel that ran.
  virtual std::string_view do_gemm(const GemmProblem& problem, const GemmArgs& args) = 0;
  virtual void do_matmul(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out,
                         const ConstTensorView& bias) = 0;
  virtual void do_norm(const ConstTensorView& x, const RowNorm& how, const TensorView& out) = 0;
  virtual void do_norm_quantize(const ConstTensorView& x, const RowNorm& how,
                                const ActivationTransform& transform, const QTensor& out) = 0;
  virtual void do_rotate_heads(const TensorView& x, const HeadRotation& how) = 0;
  virtual void do_attention(const AttentionArgs& args) = 0;
  virtual void do_swiglu(const ConstTensorView& gate, const ConstTensorView& up,
                         const TensorView& out) = 0;
  virtual void do_activate(const ConstTensorView& x, Activation how, const TensorView& out) = 0;
  virtual void do_add(const TensorView& h, const ConstTensorView& x) = 0;
  virtual void do_add_gated(const TensorView& h, const ConstTensorView& x, const RowNorm& how,
                            const ConstTensorView& gate) = 0;
  virtual void do_embed(const ConstTensorView& table, std::span<const int32_t> rows,
                        const TensorView& out) = 0;
  virtual void do_sinusoids(std::span<const float> times, const ConstTensorView& frequencies,
                            const TensorView& out) = 0;
  virtual void do_group_norm(const ConstTensorView& x, const GroupNorm& how,
                             const TensorView& out) = 0;
  virtual void do_conv2d(const ConvArgs& args) = 0;
  virtual void do_upsample(const ConstTensorView& x, int64_t height, int64_t width,
                           const TensorView& out) = 0;

 private:
  GemmObserver gemm_observer_;
  OpObserver* op_observer_ = nullptr;
  bool trace_gemm_;  // OCTET_TRACE=gemm
};

}  // namespace octet
