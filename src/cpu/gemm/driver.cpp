// Loops, from outside to inside:
//   task      m_block x n_block outputs, handed to a thread
//   k block   the panels of b in it fit L1, the panels of a in it fit L2
//   panel b   stays in L1 ...
//   panel a   ... while the panels of a stream past it from L2
// The int32 sums of a task live in an L2-sized scratch between k blocks, one mr x nr tile after the
// other. After the last k block a tile goes through the epilogue while it is still in L1.
#include "cpu/gemm/driver.h"

#include <algorithm>

#include "base/checked.h"
#include "cpu/gemm/pack.h"

namespace octet::cpu {
namespace {

// Scratch of 512 KB and about as much of a per k block: together half of a 2 MB L2, and still
// tolerable with 1 MB. On smaller caches the blocks spill to L3, which costs speed but not results.
constexpr int64_t kMaxRows = 512;
constexpr int64_t kMaxColumns = 256;

struct Blocks {
  int64_t m_panels;  // panels per task
  int64_t n_panels;
  int64_t m_tasks;
  int64_t n_tasks;
  int64_t k_block;
};

// Large blocks reuse the caches best; smaller ones when the threads would run out of tasks.
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
  // Equal k blocks: a short last one would pay for a pass over the sums and do little work.
  const int64_t k = padded_k(kernel, problem.k);
  const int64_t passes = std::max<int64_t>(1, ceil_div(k, kernel.k_block));
  blocks.k_block = std::max<int64_t>(round_up(ceil_div(k, passes), kernel.k_step), 1);
  return blocks;
}

void reserve(Buffer& buffer, int64_t bytes) {
  if (static_cast<int64_t>(buffer.bytes()) < bytes) {
    buffer = allocate_host(static_cast<size_t>(bytes));
  }
}

// One task: its tiles, all of k.
class Task {
 public:
  Task(const Int8MicroKernel& kernel, const GemmProblem& problem, const GemmArgs& args,
       const Blocks& blocks, const int8_t* activations, int32_t* sums)
      : kernel_(kernel), problem_(problem), args_(args), rows_(row_ops(kernel.simd)),
        blocks_(blocks), activations_(activations), sums_(sums),
        weights_(reinterpret_cast<const int8_t*>(args.w->values.data())),
        starts_(reinterpret_cast<const int32_t*>(
            weights_ + weight_panel_bytes(kernel, problem.n, problem.k))),
        k_padded_(padded_k(kernel, problem.k)) {}

  void run(int64_t index) {
    const int64_t m_first = (index % blocks_.m_tasks) * blocks_.m_panels;
    const int64_t n_first = (index / blocks_.m_tasks) * blocks_.n_panels;
    const int64_t m_last =
        std::min(m_first + blocks_.m_panels, ceil_div(problem_.m, kernel_.mr));
    const int64_t n_last =
        std::min(n_first + blocks_.n_panels, ceil_div(problem_.n, kernel_.nr));
    const int64_t tile = int64_t{kernel_.mr} * kernel_.nr;
    // At least one pass, so that k = 0 still writes its zeros.
    for (int64_t k0 = 0; k0 == 0 || k0 < k_padded_; k0 += blocks_.k_block) {
      const int64_t k = std::min(blocks_.k_block, k_padded_ - k0);
      const bool last = k0 + k >= k_padded_;
      int32_t* acc = sums_;
      for (int64_t n_panel = n_first; n_panel < n_last; ++n_panel) {
        const int8_t* b = weights_ + n_panel * kernel_.nr * k_padded_ + k0 * kernel_.nr;
        for (int64_t m_panel = m_first; m_panel < m_last; ++m_panel, acc += tile) {
          const int8_t* a = activations_ + m_panel * kernel_.mr * k_padded_ + k0 * kernel_.mr;
          if (k0 == 0 && kernel_.a_offset != 0) start_sums(n_panel, acc);
          kernel_.run(a, b, k, acc, k0 > 0 || kernel_.a_offset != 0);
          if (last) write(m_panel, n_panel, acc);
        }
      }
    }
  }

 private:
  void start_sums(int64_t n_panel, int32_t* acc) const {
    const int32_t* starts = starts_ + n_panel * kernel_.nr;
    for (int i = 0; i < kernel_.mr; ++i) std::copy_n(starts, kernel_.nr, acc + i * kernel_.nr);
  }

  void write(int64_t m_panel, int64_t n_panel, const int32_t* acc) const {
    const int64_t row = m_panel * kernel_.mr;
    const int64_t column = n_panel * kernel_.nr;
    const int64_t rows = std::min<int64_t>(kernel_.mr, problem_.m - row);
    const int64_t columns = std::min<int64_t>(kernel_.nr, problem_.n - column);
    const int64_t element_bytes = bits_of(problem_.out) / 8;
    const float* col_scale = reinterpret_cast<const float*>(args_.w->col_scale.data()) + column;
    const float* bias = problem_.fusion == Fusion::bias
                            ? reinterpret_cast<const float*>(args_.w->bias.data()) + column
                            : nullptr;
    for (int64_t i = 0; i < rows; ++i) {
      const float row_scale = args_.a.scales.as<float>()[row + i];
      std::byte* out = args_.out.data +
                       ((row + i) * args_.out.row_stride() + column) * element_bytes;
      rows_.epilogue(acc + i * kernel_.nr, columns, row_scale, col_scale, bias, out, problem_.out);
    }
  }

  const Int8MicroKernel& kernel_;
  const GemmProblem& problem_;
  const GemmArgs& args_;
  const RowOps& rows_;
  const Blocks& blocks_;
  const int8_t* activations_;
  int32_t* sums_;
  const int8_t* weights_;
  const int32_t* starts_;
  int64_t k_padded_;
};

}  // namespace

void gemm(ThreadPool& pool, const Int8MicroKernel& kernel, const GemmProblem& problem,
          const GemmArgs& args, GemmWorkspace& workspace) {
  const Blocks blocks = choose_blocks(kernel, problem, pool.threads());
  reserve(workspace.activations, activation_bytes(kernel, problem.m, problem.k));
  workspace.accumulators.resize(static_cast<size_t>(pool.threads()));
  for (Buffer& buffer : workspace.accumulators) {
    reserve(buffer, blocks.m_panels * blocks.n_panels * kernel.mr * kernel.nr *
                        static_cast<int64_t>(sizeof(int32_t)));
  }

  auto* activations = reinterpret_cast<int8_t*>(workspace.activations.data());
  pool.run(ceil_div(problem.m, kernel.mr), [&](int64_t panel, int) {
    pack_activation_panel(kernel, args.a.values, panel, activations);
  });
  pool.run(blocks.m_tasks * blocks.n_tasks, [&](int64_t index, int thread) {
    auto& sums = workspace.accumulators[static_cast<size_t>(thread)];
    if (kernel.begin != nullptr) kernel.begin();
    Task(kernel, problem, args, blocks, activations, reinterpret_cast<int32_t*>(sums.data()))
        .run(index);
    if (kernel.end != nullptr) kernel.end();
  });
}

}  // namespace octet::cpu
