#include "cuda/attention/attention.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "base/log.h"
#include "cuda/attention/softmax_rows.h"
#include "cuda/check.h"
#include "cuda/rows/head_kernels.h"

namespace octet::cuda {
namespace {

// Scores in memory at a time: enough rows to fill a large GPU, even with many keys.
// With the weights made of them they have to fit into models::kOpsBytes.
constexpr int64_t kScoreBytes = int64_t{96} << 20;
// Rows of weights and transposed values are padded with zeros to a multiple of this many keys, as
// the tensor cores require.
constexpr int64_t kKeyStep = 8;

template <class Byte>
BasicView<Byte> part(const BasicView<Byte>& view, int64_t row, int64_t rows, int64_t column,
                     int64_t columns) {
  const int64_t at = (row * view.row_stride() + column) * bits_of(view.dtype) / 8;
  return BasicView<Byte>::rows(view.data + at, view.dtype, rows, columns, view.row_stride());
}

}  // namespace

Attention::Attention(Device& device, Matmul& matmul, const std::string& forced)
    : device_(device),
      matmul_(matmul),
      launcher_(device),
      cudnn_(device),
      force_unfused_(forced == kUnfused),
      force_cudnn_(forced == kCudnn) {
  if (!forced.empty() && !force_unfused_ && !force_cudnn_) forced_ = &find_flash(forced);
}

const FlashKernel* Attention::choose(const AttentionArgs& args) const {
  if (force_unfused_ || force_cudnn_) return nullptr;
  if (forced_ == nullptr) return launcher_.choose(args);
  const std::string refusal = forced_->refusal(args, device_.traits());
  check(refusal.empty(), "attention: {} was forced but cannot run q {} with {} heads: {}",
        forced_->name, args.q.to_string(), args.heads, refusal);
  return forced_;
}

bool Attention::prefers_cudnn(const AttentionArgs& args, const FlashKernel* kernel) {
  if (force_cudnn_) {
    const std::string refusal = cudnn_.refusal(args);
    check(refusal.empty(), "attention: {} was forced but cannot run q {} with {} heads: {}", kCudnn,
          args.q.to_string(), args.heads, refusal);
    return true;
  }
  if (force_unfused_ || forced_ != nullptr || args.is_int8() || cudnn_failed_) return false;
  // Predicted: the tensor cores of sm_100 reach a fraction of their rate with mma.sync. On Hopper
  // our own kernel is faster, on GeForce both use mma.sync.
  const bool uses_mma_sync = kernel != nullptr && kernel->hopper() == nullptr;
  return uses_mma_sync && device_.traits().major == 10 && cudnn_.refusal(args).empty();
}

std::string_view Attention::run(const AttentionArgs& args) {
  const FlashKernel* kernel = choose(args);
  if (prefers_cudnn(args, kernel) && run_by_cudnn(args)) return kCudnn;
  if (kernel != nullptr) {
    launcher_.launch(*kernel, args);
    return kernel->name;
  }
  check(!args.is_int8(),
        "attention: no kernel takes the codes q {} and k {} with v {} and {} heads, expected heads "
        "that {}() does not refuse, and rows at multiples of 16 bytes",
        args.q.to_string(), args.k.to_string(), args.v.to_string(), args.heads,
        args.has_int8_values() ? "why_no_int8_values" : "why_no_int8_attention");
  run_unfused(args);
  return kUnfused;
}

bool Attention::run_by_cudnn(const AttentionArgs& args) {
  try {
    cudnn_.run(args);
    return true;
  } catch (const Error& error) {
    if (force_cudnn_) throw;
    cudnn_failed_ = true;
    log::warning("{}; Octet's own kernels are used", error.sentence());
    return false;
  }
}

std::string Attention::why_no_int8(int64_t head_dim, DType results, bool values) const {
  if (results != DType::bf16) {
    return fmt::format("this GPU has no INT8 attention for {} activations", name_of(results));
  }
  const auto serves = [&](const FlashKernel& kernel) {
    return kernel.int8 && kernel.int8_values == values && kernel.head_dim == head_dim;
  };
  if (forced_ != nullptr && serves(*forced_)) return "";
  for (const FlashKernel& kernel : flash_kernels()) {
    if (serves(kernel) && kernel.unsuitable(device_.traits()).empty()) {
      return "";
    }
  }
  return fmt::format("this GPU, sm_{}, has no INT8 attention {}for heads of {} channels",
                     device_.traits().architecture(), values ? "with INT8 values " : "", head_dim);
}

void Attention::run_unfused(const AttentionArgs& args) {
  const int64_t keys = args.keys(), head_dim = args.head_dim();
  const int64_t stride = round_up(keys, kKeyStep);
  const int64_t most_rows = std::clamp<int64_t>(kScoreBytes / (stride * 4), 1, args.rows());
  const DType dtype = args.q.dtype;
  const bool in_place = dtype == DType::f32;
  const Buffer scores = device_.allocate_scratch(bytes_of(DType::f32, {most_rows, stride}));
  const Buffer weights =
      device_.allocate_scratch(in_place ? 0 : bytes_of(dtype, {most_rows, stride}));
  const Buffer values = device_.allocate_scratch(bytes_of(dtype, {head_dim, stride}));
  const TensorView transposed(values.data(), dtype, {head_dim, stride});
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(head_dim)));
  const int64_t sharing = args.heads / args.kv_heads;
  for (int64_t head = 0; head < args.heads; ++head) {
    const int64_t column = head * head_dim, kv_column = head / sharing * head_dim;
    if (head % sharing == 0) {
      launch_transpose(part(args.v, 0, keys, kv_column, head_dim), transposed, device_.stream());
      check_launch("transposing values");
    }
    for (int64_t row = 0; row < args.rows(); row += most_rows) {
      const int64_t rows = std::min(most_rows, args.rows() - row);
      const int64_t seen = args.causal ? row + rows : keys;
      const int64_t padded = round_up(seen, kKeyStep);
      const auto chunk_scores = TensorView::rows(scores.data(), DType::f32, rows, seen, stride);
      const auto chunk_weights =
          TensorView::rows(in_place ? scores.data() : weights.data(), dtype, rows, padded, stride);
      matmul_.run(part(args.q, row, rows, column, head_dim),
                  part(args.k, 0, seen, kv_column, head_dim), chunk_scores, {});
      launch_softmax_rows(chunk_scores, scale, args.causal ? row + 1 : 0, chunk_weights,
                          device_.stream());
      check_launch("softmax");
      matmul_.run(chunk_weights, part(transposed, 0, head_dim, 0, padded),
                  part(args.out, row, rows, column, head_dim), {});
    }
  }
}

}  // namespace octet::cuda
