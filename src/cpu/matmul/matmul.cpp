// The blocking around the micro-kernels, the same for all of them:
//
//   for each pass of up to 512 rows of a
//     pack those rows: [k block][m panel][panel]
//     for each group of n panels                    (parallel; also over m when n is narrow)
//       for each k block                            (its part of a stays in L2 for the group)
//         for each n panel of the group
//           pack the b panel                        (read by every m panel: it stays in L1)
//           for each m panel: accumulators += a panel * b panel
//       store the accumulators of the group
//
// Each element of b is read from memory once per pass, so that packing it on the fly is affordable.
// A group has several n panels, because with one at a time all of a would come from L3 for each
// panel.
#include "cpu/matmul/matmul.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "cpu/scratch.h"

namespace octet::cpu {
namespace {

constexpr int64_t kRowsPerPass = 512;
constexpr int64_t kTasksPerThread = 4;  // evens out threads that are slowed down
constexpr int64_t kL2Share =
    512 << 10;  // bytes of L2 for the accumulators of a group, and as much for a

ThreadScratch caller_scratch;  // the packed rows of a, shared by all threads of a call
ThreadScratch bias_scratch;    // the bias in f32, shared as well
ThreadScratch task_scratch;    // one b panel and the accumulators of one task

// One matmul in the terms of its micro-kernel.
struct MatmulJob {
  const FloatMicroKernel& micro;
  const ConstTensorView& a;
  const ConstTensorView& b;
  const TensorView& out;
  int64_t m, n, k;
  int64_t input_bytes, output_bytes;  // of one element
  int64_t block;                      // elements of k per block but the last, a multiple of k_step
  std::byte* packed_a;
  const float* bias;  // [n], readable up to whole panels; or null

  int64_t block_length(int64_t k_at) const { return std::min(block, k - k_at); }
  int64_t padded_length(int64_t k_at) const { return round_up(block_length(k_at), micro.k_step); }

  PanelSource source(const ConstTensorView& matrix, int64_t row, int64_t rows, int64_t k_at) const {
    return {matrix.data + (row * matrix.row_stride() + k_at) * input_bytes, matrix.row_stride(),
            rows, block_length(k_at), matrix.dtype == DType::bf16};
  }
  int64_t panel_columns(int64_t n_panel) const {
    return std::min<int64_t>(micro.tile_n, n - n_panel * micro.tile_n);
  }
  PanelSource b_source(int64_t n_panel, int64_t k_at) const {
    return source(b, n_panel * micro.tile_n, panel_columns(n_panel), k_at);
  }
};

// The rows of a that are packed at the same time.
struct Pass {
  int64_t row;
  int64_t rows;
  int64_t panels;

  // Where a panel of one k block lies. Blocks before the last all have job.block columns.
  std::byte* packed(const MatmulJob& job, int64_t panel, int64_t k_at) const {
    const int64_t columns = k_at * panels + panel * job.padded_length(k_at);
    return job.packed_a + columns * job.micro.tile_m * job.micro.packed_bytes;
  }
  int64_t panel_rows(const MatmulJob& job, int64_t panel) const {
    return std::min<int64_t>(job.micro.tile_m, rows - panel * job.micro.tile_m);
  }
};

void pack_a_panel(const MatmulJob& job, const Pass& pass, int64_t panel) {
  const int64_t row = pass.row + panel * job.micro.tile_m;
  for (int64_t k_at = 0; k_at < job.k; k_at += job.block) {
    job.micro.pack_a(job.source(job.a, row, pass.panel_rows(job, panel), k_at),
                     pass.packed(job, panel, k_at));
  }
}

// Prefetches the next panel of b, a few lines at a time, between multiplications. Without it the
// packing of b waits for memory.
class Prefetcher {
 public:
  // `k_at` at or past the end of k: there is nothing to prefetch.
  Prefetcher(const MatmulJob& job, int64_t n_panel, int64_t k_at, int64_t steps) {
    if (k_at >= job.k) return;
    const PanelSource source = job.b_source(n_panel, k_at);
    base_ = static_cast<const std::byte*>(source.data);
    row_bytes_ = source.row_stride * job.input_bytes;
    lines_per_row_ = ceil_div(source.k * job.input_bytes, kCacheLine);
    left_ = source.rows * lines_per_row_;
    per_step_ = ceil_div(left_, steps);
  }

  void step() {
    for (int64_t count = std::min(per_step_, left_); count > 0; --count, --left_) {
      __builtin_prefetch(base_ + line_ * kCacheLine, 0, 2);  // into L2: L1 holds the panels
      if (++line_ == lines_per_row_) {
        line_ = 0;
        base_ += row_bytes_;
      }
    }
  }

 private:
  const std::byte* base_ = nullptr;
  int64_t row_bytes_ = 0;
  int64_t lines_per_row_ = 0;
  int64_t left_ = 0;
  int64_t per_step_ = 0;
  int64_t line_ = 0;
};

// What one task computes: the n panels [n_first, n_last) times the m panels [m_first, m_last).
struct Group {
  int64_t n_first, n_last;
  int64_t m_first, m_last;
};

void multiply_group(const MatmulJob& job, const Pass& pass, const Group& group) {
  const FloatMicroKernel& micro = job.micro;
  const int64_t m_panels = group.m_last - group.m_first;
  const int64_t tile_elements = micro.tile_m * micro.tile_n;
  const int64_t b_panel_bytes = round_up(job.block * micro.tile_n * micro.packed_bytes, kCacheLine);
  const int64_t accumulator_bytes = (group.n_last - group.n_first) * m_panels * tile_elements *
                                    static_cast<int64_t>(sizeof(float));
  std::byte* b_panel = task_scratch.at_least(b_panel_bytes + accumulator_bytes);
  auto* all_acc = reinterpret_cast<float*>(b_panel + b_panel_bytes);
  if (job.k == 0) std::memset(all_acc, 0, static_cast<size_t>(accumulator_bytes));
  const auto acc_of = [&](int64_t m_panel, int64_t n_panel) {
    return all_acc +
           ((n_panel - group.n_first) * m_panels + m_panel - group.m_first) * tile_elements;
  };

  if (micro.begin_task != nullptr) micro.begin_task();  // nothing throws from here to end_task
  for (int64_t k_at = 0; k_at < job.k; k_at += job.block) {
    for (int64_t n_panel = group.n_first; n_panel < group.n_last; ++n_panel) {
      micro.pack_b(job.b_source(n_panel, k_at), b_panel);
      const bool same_block = n_panel + 1 < group.n_last;
      Prefetcher prefetcher(job, same_block ? n_panel + 1 : group.n_first,
                            same_block ? k_at : k_at + job.block, m_panels);
      for (int64_t m_panel = group.m_first; m_panel < group.m_last; ++m_panel) {
        prefetcher.step();
        micro.multiply({pass.packed(job, m_panel, k_at), b_panel, job.padded_length(k_at),
                        pass.panel_rows(job, m_panel), acc_of(m_panel, n_panel), k_at > 0});
      }
    }
  }
  for (int64_t n_panel = group.n_first; n_panel < group.n_last; ++n_panel) {
    const int64_t column = n_panel * micro.tile_n;
    for (int64_t m_panel = group.m_first; m_panel < group.m_last; ++m_panel) {
      const int64_t row = pass.row + m_panel * micro.tile_m;
      micro.store({acc_of(m_panel, n_panel),
                   job.out.data + (row * job.out.row_stride() + column) * job.output_bytes,
                   job.out.row_stride(), pass.panel_rows(job, m_panel), job.panel_columns(n_panel),
                   job.out.dtype, job.bias == nullptr ? nullptr : job.bias + column});
    }
  }
  if (micro.end_task != nullptr) micro.end_task();
}

// The bias as f32, followed by zeros up to `length`.
const float* widened_bias(const ConstTensorView& bias, int64_t length) {
  if (bias.data == nullptr) return nullptr;
  auto* to =
      reinterpret_cast<float*>(bias_scratch.at_least(length * static_cast<int64_t>(sizeof(float))));
  for (int64_t j = 0; j < length; ++j) {
    if (j >= bias.shape[0]) {
      to[j] = 0;
    } else {
      switch (bias.dtype) {
        case DType::bf16: to[j] = to_f32(bias.as<bf16_t>()[j]); break;
        case DType::f16: to[j] = to_f32(bias.as<f16_t>()[j]); break;
        default: to[j] = bias.as<float>()[j];
      }
    }
  }
  return to;
}

// n panels per task: as many as share a's block in L2, fewer if threads would have nothing to do.
int64_t panels_per_group(const MatmulJob& job, const Pass& pass, int64_t n_panels, int threads) {
  const int64_t rows = pass.panels * job.micro.tile_m;
  if (rows * job.k * job.micro.packed_bytes <= kL2Share) return 1;  // a stays in L2 by itself
  const int64_t acc_bytes = rows * job.micro.tile_n * static_cast<int64_t>(sizeof(float));
  const int64_t for_all_threads = n_panels / (kTasksPerThread * threads);
  return std::max<int64_t>(1, std::min(kL2Share / acc_bytes, for_all_threads));
}

}  // namespace

void matmul(ThreadPool& pool, const MatmulKernel& kernel, const ConstTensorView& a,
            const ConstTensorView& b, const TensorView& out, const ConstTensorView& bias) {
  const FloatMicroKernel& micro = *kernel.micro;
  const int64_t m = out.shape[0], n = out.shape[1], k = a.shape[1];
  if (m == 0 || n == 0) return;

  // Blocks and passes of even size: a short last one would cost as much to set up as a full one.
  const int64_t blocks = std::max<int64_t>(1, ceil_div(k, micro.k_block));
  const int64_t block = round_up(std::max<int64_t>(1, ceil_div(k, blocks)), micro.k_step);
  const int64_t pass_rows = round_up(ceil_div(m, ceil_div(m, kRowsPerPass)), micro.tile_m);
  std::byte* packed_a =
      caller_scratch.at_least(pass_rows * round_up(k, micro.k_step) * micro.packed_bytes);
  const MatmulJob job{micro,
                      a,
                      b,
                      out,
                      m,
                      n,
                      k,
                      bits_of(a.dtype) / 8,
                      bits_of(out.dtype) / 8,
                      block,
                      packed_a,
                      widened_bias(bias, round_up(n, micro.tile_n))};

  const int64_t n_panels = ceil_div(n, micro.tile_n);
  for (int64_t row = 0; row < m; row += pass_rows) {
    const int64_t rows = std::min(pass_rows, m - row);
    const Pass pass{row, rows, ceil_div(rows, micro.tile_m)};
    pool.run(pass.panels, [&](int64_t panel, int) { pack_a_panel(job, pass, panel); });

    const int64_t width = panels_per_group(job, pass, n_panels, pool.threads());
    const int64_t groups = ceil_div(n_panels, width);
    const int64_t m_parts =
        std::clamp<int64_t>(ceil_div(kTasksPerThread * pool.threads(), groups), 1, pass.panels);
    pool.run(groups * m_parts, [&](int64_t task, int) {
      const int64_t n_first = task / m_parts * width;
      const int64_t part = task % m_parts;
      multiply_group(job, pass,
                     {n_first, std::min(n_first + width, n_panels), pass.panels * part / m_parts,
                      pass.panels * (part + 1) / m_parts});
    });
  }
}

}  // namespace octet::cpu
