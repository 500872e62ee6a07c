// Which block computes what.
//
// A worker is a block or a cluster of blocks, and a tile is what a worker computes at a time. The
// grid is as large as the device can hold at once, and each worker walks its share of the work:
// first whole tiles, with a stride of the number of workers; then an equal part of the steps of the
// remaining tiles ("stream-k"), which may begin and end inside a tile. The workers of such a tile
// leave what they have in memory, and the last to arrive merges it and runs the epilogue. No worker
// ever waits for another.
//
// The arguments of a kernel with such a schedule (its `Params`) have whole_tiles, the first tiles,
// each computed by one worker; k_steps of each tile; and tile_count().
#pragma once

#include <cstdint>

namespace octet::cuda {

struct Work {
  int tile;
  int k_begin, k_end;  // steps
};

template <int kBlocksPerWorker>
struct Workers {
  __device__ static uint32_t count() { return gridDim.x / kBlocksPerWorker; }
  __device__ static uint32_t self() { return blockIdx.x / kBlocksPerWorker; }
};

// The k steps of all shared tiles in a row, cut into one part per worker.
// 32 bits suffice for the products (checked on the host): there are fewer shared tiles than
// workers, or slightly more.
struct SharedSteps {
  uint32_t steps, workers;
  template <class Params>
  __device__ SharedSteps(const Params& params, uint32_t workers_)
      : steps((params.tile_count() - params.whole_tiles) * params.k_steps), workers(workers_) {}
  __device__ uint32_t first_of(uint32_t worker) const { return steps * worker / workers; }
  // The worker whose part contains this step: the last one that begins at or before it.
  __device__ uint32_t worker_of(uint32_t step) const { return ((step + 1) * workers - 1) / steps; }
};

// In family sm80 of the GEMM two of these live in registers during the main loop, which has none to
// spare, hence one number: the next whole tile, or the complement of the next step of the shared
// ones.
template <int kBlocksPerWorker>
class WorkList {
  using Workers = cuda::Workers<kBlocksPerWorker>;

 public:
  __device__ WorkList() : next_(static_cast<int>(Workers::self())) {}

  // False if nothing is left.
  template <class Params>
  __device__ bool next(const Params& params, Work& work) {
    if (next_whole(params, work)) return true;
    const SharedSteps shared(params, Workers::count());
    if (shared.steps == 0) return false;
    if (next_ >= 0) next_ = ~static_cast<int>(shared.first_of(Workers::self()));
    const int step = ~next_;
    const int left = static_cast<int>(shared.first_of(Workers::self() + 1)) - step;
    if (left <= 0) return false;
    const int index = step / params.k_steps;
    const int begin = step - index * params.k_steps;
    const int end = min(params.k_steps, begin + left);
    work = {params.whole_tiles + index, begin, end};
    next_ = ~(step + end - begin);
    return true;
  }

 private:
  // False if no whole tile is left.
  template <class Params>
  __device__ bool next_whole(const Params& params, Work& work) {
    if (next_ < 0 || next_ >= params.whole_tiles) return false;
    work = {next_, 0, params.k_steps};
    next_ += static_cast<int>(Workers::count());
    return true;
  }

  int next_;
};

}  // namespace octet::cuda
