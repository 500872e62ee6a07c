// Loops, from outside to inside:
//   task      m_block x n_block outputs, handed to a thread
//   k block   the panels of a in it fit L2
//   panel b   stays in L1 ...
//   panel a   ... while the panels of a stream past it from L2
// The int32 accumulators of a task live in an L2-sized scratch between k blocks, one mr x nr tile
// after the other. After the last k block a tile goes through the epilogue while it is still in L1.
//
// The next panel of b, the next k block of a and the lines of the output are prefetched by the
// microkernel while it multiplies (see Ahead). On two cores of an Emerald Rapids Xeon, AMX,
// m = 512, n = 4608, k = 12288, that took 24 ms, without it 30, configurations interleaved.
#include "cpu/gemm/driver.h"

#include <algorithm>

#include "base/checked.h"
#include "cpu/gemm/pack.h"

namespace octet::cpu {
namespace {

// Chosen for the AMX kernel: there the accumulators take 256 KB, the k blocks of a 300 KB each, of
// which two are alive: together half of a 2 MB L2. From 128 x 512 to 512 x 512 its speed differs by
// less than 20 %.
constexpr int64_t kMaxRows = 256;
constexpr int64_t kMaxColumns = 256;
constexpr int64_t kLine = 64;

struct Blocks {
  int64_t m_panels;  // panels per task
  int64_t n_panels;
  int64_t m_tasks;
  int64_t n_tasks;
  int64_t k_block;
};

// Large blocks reuse the caches best; smaller ones if the threads would run out of tasks.
Blocks choose_blocks(const Int8MicroKernel& kernel, const GemmProblem& problem, int threads) {
  const int64_t m_panels = ceil_div(problem.m, kernel.mr);
  const int64_t n_panels = ceil_div(problem.n, kernel.nr);
  Blocks blocks = {};
  blocks.m_panels = std::min(m_panels, ceil_div(kMaxRows, kernel.mr));
  blocks.n_panels = std::min(n_panels, ceil_div(kMaxColumns, kernel.nr));
  const int64_t wanted = threads == 1 ? 1 : int64_t{4} * threads;
  const auto tasks = [&] {
    return ceil_div(m_panels, blocks.m_panels) * ceil_div(n_panels, blocks.n_panels);
  };
  while (tasks() < wanted && blocks.n_panels > 1) blocks.n_panels = ceil_div(blocks.n_panels, 2);
  while (tasks() < threads && blocks.m_panels > 1) blocks.m_panels = ceil_div(blocks.m_panels, 2);
  blocks.m_tasks = ceil_div(m_panels, blocks.m_panels);
  blocks.n_tasks = ceil_div(n_panels, blocks.n_panels);
  // Equal k blocks: a short last one would cost a pass over the accumulators and do little work.
  const int64_t k = padded_k(kernel, problem.k);
  const int64_t passes = std::max<int64_t>(1, ceil_div(k, kernel.k_block));
  blocks.k_block = std::max<int64_t>(round_up(ceil_div(k, passes), kernel.k_step), kernel.k_step);
  return blocks;
}

// One GEMM in the terms of its microkernel.
struct Job {
  const Int8MicroKernel& kernel;
  const GemmProblem& problem;
  const GemmArgs& args;
  const RowOps& rows;
  Blocks blocks;
  int64_t m_panels, n_panels;  // of the whole problem
  int64_t k_padded;
  int8_t* activations;
  const int8_t* weights;
  const int32_t* starts;  // of the accumulators, per column; see pack.h

  int64_t block_length(int64_t k0) const { return std::min(blocks.k_block, k_padded - k0); }
  int8_t* activation_panel(int64_t m_panel, int64_t k0) const {
    return activations + kernel.mr * (k0 * m_panels + m_panel * block_length(k0));
  }
  const int8_t* weight_panel(int64_t n_panel, int64_t k0) const {
    return weights + kernel.nr * (n_panel * k_padded + k0);
  }
};

EpilogueTile output_tile(const Job& job, int64_t m_panel, int64_t n_panel, const int32_t* acc) {
  const int64_t row = m_panel * job.kernel.mr;
  const int64_t column = n_panel * job.kernel.nr;
  const FusionRow& fusion = traits_of(job.problem.fusion);
  const int64_t out_column = output_columns(fusion.fusion, column);
  const int64_t element_bytes = bits_of(job.problem.out) / 8;
  const TensorView& out = job.args.out;
  EpilogueTile tile = {};
  tile.acc = acc;
  tile.acc_stride = job.kernel.nr;
  tile.rows = std::min<int64_t>(job.kernel.mr, job.problem.m - row);
  tile.columns = std::min<int64_t>(job.kernel.nr, job.problem.n - column);
  tile.row_scale = job.args.a.scales.as<float>() + row;
  tile.col_scale = reinterpret_cast<const float*>(job.args.w->col_scale.data()) + column;
  tile.fusion = fusion.fusion;
  if (fusion.biased) {
    tile.bias = reinterpret_cast<const float*>(job.args.w->bias.data()) + column;
  }
  tile.out_columns = output_columns(fusion.fusion, tile.columns);
  tile.out =
      reinterpret_cast<char*>(out.data + (row * out.row_stride() + out_column) * element_bytes);
  tile.out_stride_bytes = out.row_stride() * element_bytes;
  tile.dtype = job.problem.out;
  return tile;
}

// `bytes` from `at` on, spread over `steps`.
Ahead::Stream spread(const int8_t* at, int64_t bytes, int64_t steps) {
  return {at, steps > 0 ? ceil_div(bytes, steps * kLine) : 0};
}

// Accumulators of kernels with an activation offset start at the value that cancels it.
void start_accumulators(const Job& job, int64_t n_panel, int32_t* acc) {
  const int32_t* starts = job.starts + n_panel * job.kernel.nr;
  for (int i = 0; i < job.kernel.mr; ++i) {
    std::copy_n(starts, job.kernel.nr, acc + i * job.kernel.nr);
  }
}

// The tiles of one task, all of k. `accumulators` is this thread's scratch.
void run_task(const Job& job, int64_t index, int32_t* accumulators) {
  const Int8MicroKernel& kernel = job.kernel;
  const Blocks& blocks = job.blocks;
  const int64_t m_first = (index % blocks.m_tasks) * blocks.m_panels;
  const int64_t n_first = (index / blocks.m_tasks) * blocks.n_panels;
  const int64_t m_last = std::min(m_first + blocks.m_panels, job.m_panels);
  const int64_t n_last = std::min(n_first + blocks.n_panels, job.n_panels);
  const int64_t m_count = m_last - m_first;
  // At least one pass, so that k = 0 still writes its zeros.
  for (int64_t k0 = 0; k0 == 0 || k0 < job.k_padded; k0 += blocks.k_block) {
    const int64_t k = job.block_length(k0);
    const int64_t steps = k / kernel.k_step;
    const bool last_pass = k0 + k >= job.k_padded;
    Ahead ahead = {};
    if (!last_pass) {
      ahead.a = spread(job.activation_panel(m_first, k0 + k),
                       m_count * kernel.mr * job.block_length(k0 + k),
                       m_count * (n_last - n_first) * steps);
    }
    int32_t* acc = accumulators;
    for (int64_t n_panel = n_first; n_panel < n_last; ++n_panel) {
      ahead.b = {};
      if (n_panel + 1 < n_last) {
        ahead.b = spread(job.weight_panel(n_panel + 1, k0), kernel.nr * k, m_count * steps);
      }
      for (int64_t m_panel = m_first; m_panel < m_last; ++m_panel) {
        const EpilogueTile tile = output_tile(job, m_panel, n_panel, acc);
        if (last_pass && tile.rows == kernel.mr) {
          ahead.out = tile.out;
          ahead.out_stride_bytes = tile.out_stride_bytes;
          ahead.out_lines = ceil_div(tile.out_columns * (bits_of(tile.dtype) / 8), kLine);
          ahead.out_rows_per_step = steps > 0 ? ceil_div(kernel.mr, steps) : 0;
        }
        if (k0 == 0 && kernel.a_offset != 0) start_accumulators(job, n_panel, acc);
        kernel.run(job.activation_panel(m_panel, k0), job.weight_panel(n_panel, k0), k, acc,
                   k0 > 0 || kernel.a_offset != 0, ahead);
        if (last_pass) job.rows.epilogue(tile);
        acc += int64_t{kernel.mr} * kernel.nr;
        ahead.a.at += ahead.a.lines_per_step * steps * kLine;
        ahead.b.at += ahead.b.lines_per_step * steps * kLine;
      }
    }
  }
}

}  // namespace

void gemm(ThreadPool& pool, const Int8MicroKernel& kernel, const GemmProblem& problem,
          const GemmArgs& args, GemmWorkspace& workspace) {
  const Blocks blocks = choose_blocks(kernel, problem, pool.threads());
  std::byte* activations =
      workspace.activations.at_least(activation_bytes(kernel, problem.m, problem.k));
  workspace.accumulators.resize(static_cast<size_t>(pool.threads()));
  const int64_t accumulator_bytes = blocks.m_panels * blocks.n_panels * kernel.mr * kernel.nr *
                                    static_cast<int64_t>(sizeof(int32_t));

  const auto* weights = reinterpret_cast<const int8_t*>(args.w->values.data());
  const Job job = {
      .kernel = kernel,
      .problem = problem,
      .args = args,
      .rows = row_ops(kernel.simd),
      .blocks = blocks,
      .m_panels = ceil_div(problem.m, kernel.mr),
      .n_panels = ceil_div(problem.n, kernel.nr),
      .k_padded = padded_k(kernel, problem.k),
      .activations = reinterpret_cast<int8_t*>(activations),
      .weights = weights,
      .starts = reinterpret_cast<const int32_t*>(weights +
                                                 weight_panel_bytes(kernel, problem.n, problem.k)),
  };
  pool.run(job.m_panels, [&](int64_t m_panel, int) {
    for (int64_t k0 = 0; k0 < job.k_padded; k0 += blocks.k_block) {
      pack_activation_panel(kernel, args.a.values, m_panel, k0, job.block_length(k0),
                            job.activation_panel(m_panel, k0));
    }
  });
  pool.run(blocks.m_tasks * blocks.n_tasks, [&](int64_t index, int thread) {
    std::byte* accumulators =
        workspace.accumulators[static_cast<size_t>(thread)].at_least(accumulator_bytes);
    if (kernel.begin != nullptr) kernel.begin();  // nothing throws from here to end
    run_task(job, index, reinterpret_cast<int32_t*>(accumulators));
    if (kernel.end != nullptr) kernel.end();
  });
}

}  // namespace octet::cpu
