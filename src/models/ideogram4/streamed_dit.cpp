#include "models/ideogram4/streamed_dit.h"

#include <algorithm>

#include "weights/loader.h"
#include "weights/random_weights.h"

namespace octet::ideogram4 {

DitMemory memory_of(const DitConfig& config, bool conditional, DType dtype) {
  Dit dit;
  dit.config = config;
  DitBlock block;
  weights::WeightCount of_frame(dtype, /*int8=*/false), of_block(dtype, /*int8=*/false);
  visit_frame(dit, conditional, of_frame);
  visit_block(block, config, 0, of_block);
  return {static_cast<uint64_t>(of_frame.bytes()), static_cast<uint64_t>(of_block.bytes())};
}

StreamedDit::StreamedDit(nn::Context& ctx, ThreadPool& pool, const DitFiles& files,
                         bool conditional, int64_t resident,
                         const std::function<void(int64_t)>& progress)
    : pool_(pool), source_(open_dit(files, conditional)) {
  dit_.config = source_.config;
  weights::Loader load(source_.weights, ctx.backend, pool_,
                       {.dtype = ctx.dtype, .int8 = false, .fingerprint = false});
  visit_frame(dit_, conditional, load);
  dit_.blocks.resize(static_cast<size_t>(std::min(resident, dit_.config.layers)));
  for (size_t i = 0; i < dit_.blocks.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    visit_block(dit_.blocks[i], dit_.config, index, load);
    if (progress) progress(index + 1);
  }
}

nn::Matrix StreamedDit::forward(nn::Context& ctx, const DitPrompt& prompt, const ConstTensorView& z,
                                float time) const {
  weights::Loader load(source_.weights, ctx.backend, pool_,
                       {.dtype = ctx.dtype, .int8 = false, .fingerprint = false});
  DitBlock passing;
  const auto block_at = [&](int64_t i) -> const DitBlock& {
    if (i < std::ssize(dit_.blocks)) return dit_.blocks[static_cast<size_t>(i)];
    passing = {};  // released before the next is loaded: never two of them
    visit_block(passing, dit_.config, i, load);
    return passing;
  };
  return ideogram4::forward(ctx, dit_, block_at, prompt, z, time);
}

}  // namespace octet::ideogram4
