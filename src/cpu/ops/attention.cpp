// Attention by blocks of keys, so that scores never leave the cache:
//
//   for each head of k and v, for each block of keys   (parallel): pack k, transpose and pack v
//   for each head, for each chunk of rows              (parallel)
//     pack the rows of q
//     for each block of keys that a row of the chunk sees
//       scores = q k^T                                 [rows of the chunk, keys of the block], f32
//       weights = exp(score - largest so far)
//       acc = acc * exp(old largest - new largest) + weights v
//     out = acc / sum of the weights
//
// Products use the matmul's micro-kernels. Weights are f32 if the kernel multiplies f32, even for
// bf16 inputs, and rounded to bf16 if it multiplies bf16 (AMX, BFMMLA). Sums over keys start again
// with each block, which also keeps their rounding small.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "cpu/matmul/panels.h"
#include "cpu/ops/ops.h"
#include "cpu/ops/row_tasks.h"

namespace octet::cpu {
namespace {

constexpr int64_t kRowsPerTask = 128;
constexpr int64_t kKeysPerBlock = 512;
constexpr int64_t kKeysPerCausalBlock = 128;  // as wide as the chunks are high: half is skipped
constexpr int64_t kAttentionTasksPerThread = 2;

ThreadScratch packed_scratch;  // k and v of all heads, shared by all threads of a call
ThreadScratch attention_scratch;

// One call in the terms of its micro-kernel.
struct AttentionJob {
  const Workers& workers;
  const AttentionArgs& args;
  const FloatMicroKernel& micro;
  DType weight_type;  // of the exponentials that multiply v
  int64_t head_dim, keys;
  int64_t width;  // keys per block but the last
  int64_t rows_per_task;
  int64_t k_bytes, block_bytes;  // of a packed block of k, and of k and v
  std::byte* packed;

  int64_t blocks() const { return ceil_div(keys, width); }
  int64_t block_keys(int64_t block) const { return std::min(width, keys - block * width); }
  Panels k_panels(int64_t count) const { return {micro, Panels::Side::b, count, head_dim}; }
  Panels v_panels(int64_t count) const { return {micro, Panels::Side::b, head_dim, count}; }
  std::byte* packed_k(int64_t kv_head, int64_t block) const {
    return packed + (kv_head * blocks() + block) * block_bytes;
  }
  std::byte* packed_v(int64_t kv_head, int64_t block) const {
    return packed_k(kv_head, block) + k_bytes;
  }
  // Rows of one head of q, k, v or out.
  template <class Byte>
  BasicView<Byte> head_rows(const BasicView<Byte>& matrix, int64_t head, int64_t row,
                            int64_t rows) const {
    return BasicView<Byte>::rows(
        row_bytes(matrix, row) + head * head_dim * bits_of(matrix.dtype) / 8, matrix.dtype, rows,
        head_dim, matrix.row_stride());
  }
};

// Several buffers in one scratch.
class Buffers {
 public:
  int64_t reserve(int64_t bytes) {
    const int64_t at = total_;
    total_ += round_up(bytes, kCacheLine);
    return at;
  }
  int64_t total() const { return total_; }

 private:
  int64_t total_ = 0;
};

// out [columns, rows] = in [rows, columns]
template <class T>
void transpose(const ConstTensorView& in, T* out, int64_t out_stride) {
  constexpr int64_t kSquare = 16;
  const int64_t rows = in.shape[0], columns = in.shape[1];
  for (int64_t row = 0; row < rows; row += kSquare) {
    for (int64_t column = 0; column < columns; column += kSquare) {
      const int64_t row_end = std::min(rows, row + kSquare);
      const int64_t column_end = std::min(columns, column + kSquare);
      for (int64_t j = column; j < column_end; ++j) {
        for (int64_t i = row; i < row_end; ++i) out[j * out_stride + i] = in.row<T>(i)[j];
      }
    }
  }
}

void pack_block(const AttentionJob& job, int64_t kv_head, int64_t block) {
  const int64_t first = block * job.width, count = job.block_keys(block);
  job.k_panels(count).pack_all(job.head_rows(job.args.k, kv_head, first, count),
                               job.packed_k(kv_head, block));
  const ConstTensorView v = job.head_rows(job.args.v, kv_head, first, count);
  std::byte* transposed = attention_scratch.at_least(job.head_dim * count * bits_of(v.dtype) / 8);
  if (v.dtype == DType::bf16) {
    transpose(v, reinterpret_cast<bf16_t*>(transposed), count);
  } else {
    transpose(v, reinterpret_cast<float*>(transposed), count);
  }
  job.v_panels(count).pack_all(ConstTensorView(transposed, v.dtype, {job.head_dim, count}),
                               job.packed_v(kv_head, block));
}

// The softmax of one row, as far as its blocks of keys have been seen.
struct RunningRow {
  float largest = -std::numeric_limits<float>::infinity();
  double total = 0;
};

// One head of some rows.
struct Chunk {
  int64_t head, first, rows;
};

// Exponentials of one row's scores, with zeros where it does not see a key. Returns the factor of
// the accumulators so far.
float softmax_row(const AttentionJob& job, const float* scores, int64_t visible, int64_t count,
                  RunningRow& row, std::byte* weights) {
  const int64_t weight_bytes = bits_of(job.weight_type) / 8;
  std::memset(weights + visible * weight_bytes, 0,
              static_cast<size_t>((count - visible) * weight_bytes));
  if (visible == 0) return 1;
  const auto factor =
      static_cast<float>(0x1.71547652b82fep0 / std::sqrt(static_cast<double>(job.head_dim)));
  const float largest = std::max(row.largest, job.workers.rows.largest(scores, visible));
  const double rescale =
      row.total == 0 ? 0 : std::exp2((static_cast<double>(row.largest) - largest) * factor);
  row.total = row.total * rescale + job.workers.rows.exponentials(scores, visible, largest, factor,
                                                                  weights, job.weight_type);
  row.largest = largest;
  return static_cast<float>(rescale);
}

void attend(const AttentionJob& job, const Chunk& chunk) {
  const AttentionArgs& args = job.args;
  const FloatMicroKernel& micro = job.micro;
  const int64_t head_dim = job.head_dim;
  const int64_t kv_head = chunk.head / (args.heads / args.kv_heads);
  const int64_t seen = args.causal ? chunk.first + chunk.rows : job.keys;
  const int64_t width = job.width;
  const int64_t weight_bytes = bits_of(job.weight_type) / 8;
  constexpr int64_t kFloat = sizeof(float);
  const Panels q(micro, Panels::Side::a, chunk.rows, head_dim);

  Buffers buffers;
  const int64_t q_at = buffers.reserve(q.bytes());
  const int64_t scores_at = buffers.reserve(chunk.rows * width * kFloat);
  const int64_t weights_at = buffers.reserve(chunk.rows * width * weight_bytes);
  const int64_t packed_at =
      buffers.reserve(Panels(micro, Panels::Side::a, chunk.rows, width).bytes());
  const int64_t tiles_at = buffers.reserve(accumulator_bytes(micro, q));
  const int64_t part_at = buffers.reserve(chunk.rows * head_dim * kFloat);
  const int64_t acc_at = buffers.reserve(chunk.rows * head_dim * kFloat);
  std::byte* memory = attention_scratch.at_least(buffers.total());
  auto* tiles = reinterpret_cast<float*>(memory + tiles_at);
  auto* acc = reinterpret_cast<float*>(memory + acc_at);
  std::memset(acc, 0, static_cast<size_t>(chunk.rows * head_dim * kFloat));
  RunningRow running[kRowsPerTask];

  if (micro.begin_task != nullptr) micro.begin_task();  // nothing throws from here to end_task
  q.pack_all(job.head_rows(args.q, chunk.head, chunk.first, chunk.rows), memory + q_at);
  for (int64_t block = 0; block * width < seen; ++block) {
    const int64_t first_key = block * width, count = job.block_keys(block);
    const int64_t visible_to_all = std::min(count, seen - first_key);
    const TensorView scores =
        TensorView::rows(memory + scores_at, DType::f32, chunk.rows, visible_to_all, width);
    multiply_panels(micro, q, memory + q_at, job.k_panels(count), job.packed_k(kv_head, block),
                    scores, nullptr, tiles);

    const TensorView weights(memory + weights_at, job.weight_type, {chunk.rows, count});
    float rescale[kRowsPerTask];
    for (int64_t i = 0; i < chunk.rows; ++i) {
      const int64_t visible =
          args.causal ? std::clamp<int64_t>(chunk.first + i + 1 - first_key, 0, count) : count;
      rescale[i] =
          softmax_row(job, scores.row<float>(i), visible, count, running[i], row_bytes(weights, i));
    }
    const Panels p(micro, Panels::Side::a, chunk.rows, count);
    p.pack_all(weights, memory + packed_at);
    const TensorView part(memory + part_at, DType::f32, {chunk.rows, head_dim});
    multiply_panels(micro, p, memory + packed_at, job.v_panels(count), job.packed_v(kv_head, block),
                    part, nullptr, tiles);
    for (int64_t i = 0; i < chunk.rows; ++i) {
      job.workers.rows.rescale_and_add(acc + i * head_dim, rescale[i], part.row<float>(i),
                                       head_dim);
    }
  }
  if (micro.end_task != nullptr) micro.end_task();

  const TensorView out = job.head_rows(args.out, chunk.head, chunk.first, chunk.rows);
  for (int64_t i = 0; i < chunk.rows; ++i) {
    job.workers.rows.scale(acc + i * head_dim, static_cast<float>(1 / running[i].total), head_dim,
                           row_bytes(out, i), out.dtype);
  }
}

}  // namespace

void attention(const Workers& workers, const MatmulKernel& kernel, const AttentionArgs& args) {
  const FloatMicroKernel& micro = *kernel.micro;
  AttentionJob job{
      .workers = workers,
      .args = args,
      .micro = micro,
      .weight_type = micro.packed_bytes == 2 ? DType::bf16 : DType::f32,
      .head_dim = args.head_dim(),
      .keys = args.keys(),
      .width = std::min(args.causal ? kKeysPerCausalBlock : kKeysPerBlock, args.keys())};
  job.k_bytes = round_up(job.k_panels(job.width).bytes(), kCacheLine);
  job.block_bytes = job.k_bytes + round_up(job.v_panels(job.width).bytes(), kCacheLine);
  job.packed = packed_scratch.at_least(args.kv_heads * job.blocks() * job.block_bytes);
  workers.pool.run(args.kv_heads * job.blocks(), [&](int64_t task, int) {
    pack_block(job, task / job.blocks(), task % job.blocks());
  });

  // As many rows as share a packed block well, fewer if threads would have nothing to do.
  const int64_t fair =
      ceil_div(args.rows() * args.heads, kAttentionTasksPerThread * workers.pool.threads());
  job.rows_per_task = std::clamp<int64_t>(round_up(fair, micro.tile_m), micro.tile_m,
                                          kRowsPerTask / micro.tile_m * micro.tile_m);
  const int64_t chunks = ceil_div(args.rows(), job.rows_per_task);
  workers.pool.run(args.heads * chunks, [&](int64_t task, int) {
    const int64_t first = task % chunks * job.rows_per_task;
    attend(job, {task / chunks, first, std::min(job.rows_per_task, args.rows() - first)});
  });
}

}  // namespace octet::cpu
