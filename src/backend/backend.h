// THE interface: what a device can do. `ref` defines it in plain loops; `cpu` and `cuda` give
// the same results faster.
//
// Rules: outputs are views that the caller allocated and that overlap no input (ops that change a
// matrix in place say so); ops on one backend run in the order of the calls, and one backend is
// used by one thread at a time. The
// public functions check their arguments once, here, and throw Error with the values;
// implementations only see arguments that fit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "backend/caller.h"
#include "backend/gemm.h"
#include "backend/observer.h"
#include "backend/ops.h"
#include "backend/recording.h"
#include "backend/transfer.h"
#include "base/checked.h"
#include "octet/sentence.h"
#include "tensor/quantized.h"
#include "tensor/tensor.h"

namespace octet {

class GemmTuning;
class ThreadPool;

class Backend {
 public:
  explicit Backend(int threads);  // of pool(); 0: one per physical core
  virtual ~Backend();

  virtual std::string name() const = 0;         // "ref", "cpu", "cuda:0"
  virtual std::string description() const = 0;  // the device in words, for reports
  virtual int threads() const = 0;              // of the host that compute its ops
  // The host's threads that work for it: the cpu backend computes with them, all read and convert
  // checkpoints with them. Made by the first call, which any thread may make.
  ThreadPool& pool();

  // Memory. copy_to_device and copy_to_host move bytes between the host and this backend's memory,
  // copy within it; the two ranges do not overlap.
  Buffer allocate(size_t bytes);
  virtual void copy_to_device(std::byte* device, const std::byte* host, size_t bytes) = 0;
  virtual void copy_to_host(std::byte* host, const std::byte* device, size_t bytes) = 0;
  virtual void copy(std::byte* to, const std::byte* from, size_t bytes) = 0;
  virtual void synchronize() = 0;
  // Whether memory keeps what is written to it. Where it does not, nobody needs to compute that.
  virtual bool keeps_values() const { return true; }

  // New memory with bytes of the host, for ops that follow. `fill` is called for disjoint ranges
  // that are the whole together, by several threads of pool() at once; each begins at a multiple of
  // upload_piece(granule). On a GPU filling and transfer overlap, and ops called before run on
  // meanwhile: that is why the memory is new. It is meant to be used soon and released; what was
  // released and is still in use on the device is bounded, by waiting.
  Buffer upload(size_t bytes, const Fill& fill, size_t granule = 1);
  // The same for a few bytes, copied before it returns.
  Buffer upload(std::span<const std::byte> bytes);

  // For weights that stay with the host and come to the device while it computes. Host memory that
  // the device copies from at full speed; where the system refuses that, ordinary memory, which is
  // copied through pinned pieces by all threads:
  virtual Buffer allocate_pinned(size_t bytes) = 0;
  // Begins a copy to such memory, in the order of the ops: complete after synchronize().
  virtual void copy_to_pinned(std::byte* pinned, const std::byte* device, size_t bytes) {
    copy_to_host(pinned, device, bytes);
  }
  // Begins a copy from such memory, which must not change until it is done. It starts after the
  // ops called before, so they may use `device`, and runs during those that follow,
  virtual Transfer prefetch(std::byte* device, const std::byte* pinned, size_t bytes) = 0;
  // which find the bytes after this. The device waits, the host does not.
  virtual void wait(const Transfer& transfer) = 0;

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

  // out[i, j] = float(x[i, j]), times row_scale[i] (F32 [rows], or no data) in f32, rounded to F32
  // or BF16. x: F8_E4M3, F16, BF16 or F32 [rows, k]. A NaN stays one.
  void convert(const ConstTensorView& x, const TensorView& out,
               const ConstTensorView& row_scale = {});

  // What a packed weight takes in this backend's memory: codes, with the padding of its layout, and
  // scales.
  virtual size_t packed_weight_bytes(int64_t n, int64_t k) const = 0;
  // Arranges a weight for this backend's kernels, once, at load: begin_pack(), then pack_rows() for
  // all of its rows, each once and in any order. `bias` F32 [n] or no data, and the transform's
  // vector are in host memory, and are copied. A gate_up weight is for swiglu only, and has
  // no bias.
  QWeight begin_pack(int64_t n, int64_t k, const ConstTensorView& bias,
                     const ActivationTransform& transform, RowOrder order = RowOrder::plain);
  // Rows from `first` on, as RowOrder counts them, in this backend's memory: their codes, and
  // scales that are multiplied by `factors` (F32 [rows], or no data).
  void pack_rows(QWeight& weight, int64_t first, const QTensor& rows,
                 const ConstTensorView& factors = {});
  // Both for a weight that is in host memory.
  QWeight pack(const QTensor& weight, const ConstTensorView& bias,
               const ActivationTransform& transform, RowOrder order = RowOrder::plain);
  // For a weight that is in this backend's memory and belongs to somebody else: where kernels read
  // plain rows, it is not copied, and has to stay as long as the result is used. For the next few
  // gemm(), since it is packed each time where they do not.
  QWeight borrow(const PlainWeight& weight);

  // See gemm.h. Returns the name of the kernel that ran, which stays; nothing if there was nothing
  // to do.
  std::string_view gemm(const GemmArgs& args, Fusion fusion);
  // Why gemm() does not use an instruction that multiplies int8; empty if it does.
  virtual Sentence why_not_native_int8() const { return ""; }

  // For tuners and benchmarks, see gemm_tuning.h.
  virtual GemmTuning& tuning() = 0;

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
  // The heads after that, before they are rounded, each quantized like a row of quantize_rows();
  // scales are multiplied by scale_factor. The last n heads lose `mean` before, F32 [n * head_dim];
  // without data, none does.
  void rotate_quantize_heads(const ConstTensorView& x, const HeadRotation& how,
                             const ConstTensorView& mean, const QuantizedHeads& out);
  // The mean over rows of the same heads, for each channel; mean: F32 [heads * head_dim].
  void rotated_head_mean(const ConstTensorView& x, const HeadRotation& how, const TensorView& mean);
  // v: F32 or BF16 [keys, heads * head_dim], each block of QuantizedValues::kKeys keys of a head
  // quantized like a row of quantize_rows().
  void quantize_values(const ConstTensorView& v, int64_t heads, const QuantizedValues& out);
  void attention(const AttentionArgs& args);
  // Why it does not take heads of this size as INT8 codes, with results of this type; empty where
  // it does. The same with values as codes, too.
  virtual std::string why_no_int8_attention(int64_t, DType) const { return ""; }
  virtual std::string why_no_int8_values(int64_t, DType) const { return ""; }
  // out = silu(gate) * up, with the silu of exact_silu.h, the same bits everywhere.
  void swiglu(const ConstTensorView& gate, const ConstTensorView& up, const TensorView& out);
  void activate(const ConstTensorView& x, Activation how, const TensorView& out);
  // h += x
  void add(const TensorView& h, const ConstTensorView& x);
  // h[i] += row [channels], for every row of h
  void add_row(const TensorView& h, const ConstTensorView& row);
  // h += tanh(gate [channels]) * norm(x)
  void add_gated(const TensorView& h, const ConstTensorView& x, const RowNorm& how,
                 const ConstTensorView& gate);
  // add_gated(h, x, how, gate), then norm_quantize(h, next, transform, out): the same bits, in one
  // pass over h and x where the backend has one.
  void add_gated_norm_quantize(const TensorView& h, const ConstTensorView& x, const RowNorm& how,
                               const ConstTensorView& gate, const RowNorm& next,
                               const ActivationTransform& transform, const QTensor& out);
  // out[i] = table[rows[i]]
  void embed(const ConstTensorView& table, std::span<const int32_t> rows, const TensorView& out);
  // out[i] = sin(times[i] * frequencies), then cos of the same; frequencies F32 [channels / 2].
  void sinusoids(std::span<const float> times, const ConstTensorView& frequencies,
                 const TensorView& out);
  void group_norm(const ConstTensorView& x, const GroupNorm& how, const TensorView& out);
  // For GroupNorm::image: all rows of an image are added, in order and some at a time. Then the
  // norm of any of them has the same bits as that of the whole.
  GroupSums begin_group_sums(DType dtype, int64_t rows, int64_t channels);
  void add_group_sums(GroupSums& sums, const ConstTensorView& x);
  void conv2d(const ConvArgs& args);
  void euler_step(const EulerStep& step);

  // Moments in the order of this backend's work, and the microseconds between two of them, for
  // which it waits. They cost little, and count until forget_marks().
  virtual size_t mark() = 0;
  // The same in the order of the copies that prefetch() begins, behind the ops called so far.
  virtual size_t mark_copies() = 0;
  virtual double microseconds_between(size_t begin, size_t end) = 0;
  virtual void forget_marks() = 0;
  // One at a time; null for none.
  void set_op_observer(OpObserver* observer) { op_observer_ = observer; }

  // Before each layer of a network: where ops run behind the calls, waits until the layer before
  // the last one is done. So work that is not wanted any more ends soon, and nothing idles
  // meanwhile.
  virtual void limit_queue() {}

  // Between two steps of a picture, when nothing else is to be done: may spend this many seconds on
  // work that makes later steps faster and changes no result, such as measuring kernels. Over time
  // it takes no more than it is given, and no memory that is not free.
  virtual void refine(double /*seconds*/) {}

  // Work that is to run several times, on the same views: a forward pass whose weights are there.
  // It releases what it allocates, and does the same each time. The first run calls it; later ones
  // take no memory, and a GPU repeats everything in one call. Observers see the runs
  // that call it: on a GPU, the first. The backend outlives the recording.
  std::unique_ptr<Recording> record(std::function<void()> work) {
    return do_record(std::move(work));
  }
  // Within recorded work: what the host does itself in each run, here, such as bringing weights
  // that the ops behind it find at the same addresses. It takes memory of its own. Otherwise it is
  // simply called.
  void unrecorded(const std::function<void()>& work);
  // Takes the memory of recorded work beforehand, for as long as the result lives: also its first
  // run then finds a place in it, and no other memory is cut into pieces.
  std::shared_ptr<Buffer> reserve_work(size_t bytes) { return work_block(bytes); }
  // How often the host has waited for the device so far, except to read times.
  virtual int64_t waits() const { return 0; }

  // Bytes of its own memory that can still be taken; nothing where that is the host's.
  virtual std::optional<uint64_t> free_memory() const { return std::nullopt; }
  // Of its own memory, everything that this process takes of the device: allocate() throws
  // OutOfMemory for what would exceed it. 0: no limit. `unavailable`: of these, what it takes for
  // itself, such as a context with its kernels, and cannot give to anybody.
  struct MemoryLimit {
    uint64_t bytes = 0, unavailable = 0;
    uint64_t usable() const { return bytes - std::min(bytes, unavailable); }
  };
  virtual MemoryLimit memory_limit() const { return {}; }
  // Gives memory that it keeps for later back to the system.
  virtual void trim_memory() {}
  // Of allocate(): bytes in use, and the most since the last reset_peak().
  virtual MemoryUse memory() const = 0;
  virtual void reset_peak() = 0;

 protected:
  virtual Buffer do_allocate(size_t bytes) = 0;
  virtual std::unique_ptr<Recording> do_record(std::function<void()> work) {
    return std::make_unique<Recording>(*this, std::move(work));
  }
  virtual void do_quantize_rows(const ConstTensorView& x, const ActivationTransform& transform,
                                const QTensor& out) = 0;
  virtual void do_quantize_rows_searched(const ConstTensorView& x,
                                         const ActivationTransform& transform,
                                         std::span<const float> ratios, const QTensor& out) = 0;
  virtual void do_dequantize_rows(const QTensor& q, const TensorView& out) = 0;
  virtual void do_convert(const ConstTensorView& x, const TensorView& out,
                          const ConstTensorView& row_scale) = 0;
  // `pool`: or null, then the calling thread fills.
  virtual Buffer do_upload(size_t bytes, const Fill& fill, ThreadPool* pool, size_t granule) = 0;
  // Of col_scale.
  static size_t scale_bytes(int64_t n) {
    return static_cast<size_t>(round_up(n, 8)) * sizeof(float);
  }
  // Makes layout, values and col_scale, with zeros where no row comes to lie; the rest of the
  // weight is already there. col_scale has room for a multiple of eight floats: kernels read whole
  // vectors.
  virtual void do_begin_pack(QWeight& weight) = 0;
  virtual void do_pack_rows(QWeight& weight, int64_t first, const QTensor& rows,
                            const ConstTensorView& factors) = 0;
  virtual QWeight do_borrow(const PlainWeight& weight);  // here: packs what is in host memory
  // See Visit; null at its end.
  virtual void do_visit(Caller*) {}
  // What a problem needs once, such as choosing its kernel by measuring; not part of its time.
  virtual void do_prepare_gemm(const GemmProblem&) {}
  // Returns the name of the kernel that ran.
  virtual std::string_view do_gemm(const GemmProblem& problem, const GemmArgs& args) = 0;
  virtual void do_matmul(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out,
                         const ConstTensorView& bias) = 0;
  virtual void do_norm(const ConstTensorView& x, const RowNorm& how, const TensorView& out) = 0;
  virtual void do_norm_quantize(const ConstTensorView& x, const RowNorm& how,
                                const ActivationTransform& transform, const QTensor& out) = 0;
  virtual void do_rotate_heads(const TensorView& x, const HeadRotation& how) = 0;
  virtual void do_rotate_quantize_heads(const ConstTensorView& x, const HeadRotation& how,
                                        const ConstTensorView& mean, const QuantizedHeads& out) = 0;
  virtual void do_rotated_head_mean(const ConstTensorView& x, const HeadRotation& how,
                                    const TensorView& mean) = 0;
  virtual void do_quantize_values(const ConstTensorView& v, int64_t heads,
                                  const QuantizedValues& out) = 0;
  // Returns the name of the kernel that ran, on codes one with _int8 or _int8_full at
  // its end, or nothing.
  virtual std::string_view do_attention(const AttentionArgs& args) = 0;
  virtual void do_swiglu(const ConstTensorView& gate, const ConstTensorView& up,
                         const TensorView& out) = 0;
  virtual void do_activate(const ConstTensorView& x, Activation how, const TensorView& out) = 0;
  virtual void do_add(const TensorView& h, const ConstTensorView& x) = 0;
  virtual void do_add_gated(const TensorView& h, const ConstTensorView& x, const RowNorm& how,
                            const ConstTensorView& gate) = 0;
  // Here: the two ops.
  virtual void do_add_gated_norm_quantize(const TensorView& h, const ConstTensorView& x,
                                          const RowNorm& how, const ConstTensorView& gate,
                                          const RowNorm& next, const ActivationTransform& transform,
                                          const QTensor& out);
  virtual void do_embed(const ConstTensorView& table, std::span<const int32_t> rows,
                        const TensorView& out) = 0;
  virtual void do_sinusoids(std::span<const float> times, const ConstTensorView& frequencies,
                            const TensorView& out) = 0;
  virtual void do_group_norm(const ConstTensorView& x, const GroupNorm& how,
                             const TensorView& out) = 0;
  virtual Buffer do_begin_group_sums(const GroupSums& sums) = 0;
  // x: the rows that follow sums.added.
  virtual void do_add_group_sums(const GroupSums& sums, const ConstTensorView& x) = 0;
  virtual void do_conv2d(const ConvArgs& args) = 0;
  virtual void do_euler_step(const EulerStep& step) = 0;

 private:
  friend class Recording;
  friend class Visit;
  // Memory for recorded work. Recordings run in turn, so they share it.
  std::shared_ptr<Buffer> work_block(size_t bytes);

  int pool_threads_;
  std::mutex pool_mutex_;
  std::unique_ptr<ThreadPool> pool_;
  OpObserver* op_observer_ = nullptr;
  bool trace_gemm_;                    // OCTET_TRACE=gemm
  WorkMemory* work_memory_ = nullptr;  // of the recorded work that runs, or null
  // While work is captured: what takes the place of unrecorded work, or null.
  const std::function<void(const std::function<void()>&)>* interruption_ = nullptr;
  std::weak_ptr<Buffer> work_block_;
};

}  // namespace octet
