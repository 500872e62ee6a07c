// A transformer that need not fit into memory: some of its blocks stay, the others are loaded for
// each forward, used and released. Its linears are in floating point, as calibration wants them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/thread_pool.h"
#include "models/ideogram4/dit.h"
#include "models/ideogram4/dit_source.h"

namespace octet::ideogram4 {

// Bytes that weights in floating point take in a backend's memory.
struct DitMemory {
  uint64_t frame = 0;  // all but the blocks
  uint64_t block = 0;  // one of them
};
DitMemory memory_of(const DitConfig& config, bool conditional, DType dtype);

class StreamedDit {
 public:
  // Loads all but the blocks, and of these the first `resident`. `progress` is told how many of
  // them are there; may throw to stop.
  StreamedDit(nn::Context& ctx, ThreadPool& pool, const DitFiles& files, bool conditional,
              int64_t resident, const std::function<void(int64_t)>& progress = {});

  // See dit.h.
  DitPrompt prepare(nn::Context& ctx, const std::vector<float>& features, int64_t grid_height,
                    int64_t grid_width) const {
    return ideogram4::prepare(ctx, dit_, features, grid_height, grid_width);
  }
  nn::Matrix forward(nn::Context& ctx, const DitPrompt& prompt, const ConstTensorView& z,
                     float time) const;

 private:
  ThreadPool& pool_;
  DitSource source_;
  Dit dit_;  // its blocks are those that stay
};

}  // namespace octet::ideogram4
