// THE interface: what a device can do. `ref` is its meaning in plain loops; `cpu` and `cuda` give
// the same results faster.
//
// Rules: outputs are views that the caller allocated and that overlap no input; ops on one
// backend run in the order of the calls, and one backend is used by one thread at a time. The
// public functions check their arguments once, here, and throw Error with the values;
// implementations only see arguments that fit.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/gemm.h"
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

  // Integer operations per second that the multiply instruction of gemm() reaches when it works on
  // registers alone, at this moment: the ceiling of any gemm here. Takes a few milliseconds, so it
  // can be asked again and again between measurements while clocks and neighbours change. 0 where
  // it means nothing (ref).
  virtual double int8_ceiling() = 0;

  // Unquantized: out[m, n] = a [m, k] times b [n, k] transposed; a and b both F32 or both BF16,
  // out F32, BF16 or F16, products summed in f32 or wider.
  void matmul(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out);

 protected:
  virtual void do_quantize_rows(const ConstTensorView& x, const ActivationTransform& transform,
                                const QTensor& out) = 0;
  virtual void do_dequantize_rows(const QTensor& q, const TensorView& out) = 0;
  // Fills layout and values; the rest of the weight is already there.
  virtual void do_pack(const QTensor& weight, QWeight& packed) = 0;
  // Returns the name of the kernel that ran.
  virtual std::string_view do_gemm(const GemmProblem& problem, const GemmArgs& args) = 0;
  virtual void do_matmul(const ConstTensorView& a, const ConstTensorView& b,
                         const TensorView& out) = 0;

 private:
  GemmObserver gemm_observer_;
  bool trace_gemm_;  // OCTET_TRACE=gemm
};

}  // namespace octet
