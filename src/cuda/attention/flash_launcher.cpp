#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/checked.h"
#include "base/error.h"
#include "cuda/attention/flash.h"
#include "cuda/attention/flash_params_sm90.h"
#include "cuda/check.h"
#include "cuda/device.h"
#include "cuda/tensor_map.h"

namespace octet::cuda {
namespace {

// The stride of a single row is meaningless and may be anything.
int64_t stride_of(const ConstTensorView& view) {
  const int64_t columns = view.shape[0] > 1 ? view.row_stride() : view.shape[1];
  return columns * (bits_of(view.dtype) / 8);
}

float scale_log2(const AttentionArgs& args) {
  return static_cast<float>(std::numbers::log2e / std::sqrt(static_cast<double>(args.head_dim())));
}

void allow_shared_memory(const FlashKernel& kernel) {
  check_cuda(cudaFuncSetAttribute(kernel.code, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  kernel.shared_bytes),
             "setting up " + kernel.name);
}

// Boxes of `rows` rows and `boxes` times 128 bytes of a matrix.
CUtensorMap map_of(const ConstTensorView& view, int rows, int boxes) {
  const int64_t row_bytes = view.shape[1] * (bits_of(view.dtype) / 8);
  return make_tensor_map("attention", view.data,
                         {kMapRowBytes, view.shape[0], row_bytes / kMapRowBytes},
                         {round_up(stride_of(view), 16), kMapRowBytes}, rows, boxes);
}

}  // namespace

FlashLauncher::Shares FlashLauncher::share(const HopperFlashTile& tile,
                                           const AttentionArgs& args) const {
  Shares shares;
  shares.tiles_per_head = static_cast<int>(ceil_div(args.rows(), tile.rows() * tile.cluster));
  shares.k_steps = static_cast<int>(ceil_div(args.keys(), tile.keys));
  const int64_t tiles = args.heads * shares.tiles_per_head;
  const int64_t room = device_.traits().multiprocessors / tile.cluster;
  shares.whole_tiles = static_cast<int>(tiles);
  shares.workers = static_cast<int>(std::min(tiles, room));
  double rounds = static_cast<double>(ceil_div(tiles, room));
  // The last round's keys are shared if it would leave a quarter of the workers idle and there are
  // enough to share: 18 heads of 4096 rows have 48 of 132 blocks in it, and gain 7 % that way; of
  // 4608 rows 120, and would gain nothing.
  const int64_t left = tiles % room;
  constexpr int64_t kFewestSteps = 4;
  if (!args.causal && left > 0 && 4 * left <= 3 * room &&
      left * shares.k_steps >= room * kFewestSteps) {
    shares.whole_tiles = static_cast<int>(tiles - left);
    shares.workers = static_cast<int>(room);
    constexpr double kMerging = 0.1;
    rounds = static_cast<double>(tiles) / static_cast<double>(room) + kMerging;
  }
  // Two blocks that fetch for each other are about 2 % faster than two by themselves.
  shares.time = rounds * shares.k_steps * tile.keys * (tile.cluster > 1 ? 1 : 1.02);
  return shares;
}

const FlashKernel* FlashLauncher::choose(const AttentionArgs& args) const {
  const FlashKernel* best = nullptr;
  double best_time = 0;
  for (const FlashKernel& kernel : flash_kernels()) {
    if (!kernel.refusal(args, device_.traits()).empty()) continue;
    const HopperFlashTile* tile = kernel.hopper();
    if (tile == nullptr) return best != nullptr ? best : &kernel;
    const double time = share(*tile, args).time;
    if (best == nullptr || time < best_time) best = &kernel, best_time = time;
  }
  return best;
}

void FlashLauncher::launch(const FlashKernel& kernel, const AttentionArgs& args) {
  if (const HopperFlashTile* tile = kernel.hopper()) {
    launch_sm90(kernel, *tile, args);
  } else {
    launch_sm80(kernel, std::get<FlashTile>(kernel.tile), args);
  }
}

void FlashLauncher::launch_sm80(const FlashKernel& kernel, const FlashTile& tile,
                                const AttentionArgs& args) {
  FlashParams params{};
  params.q = args.q.data, params.q_stride = stride_of(args.q);
  params.k = args.k.data, params.k_stride = stride_of(args.k);
  params.v = args.v.data, params.v_stride = stride_of(args.v);
  params.out = args.out.data, params.out_stride = stride_of(args.out);
  params.rows = static_cast<int>(args.rows());
  params.keys = static_cast<int>(args.keys());
  params.head_bytes = static_cast<int>(args.head_dim() * 2);
  params.scale_log2 = scale_log2(args);
  params.causal = args.causal;
  if (tile.int8) {
    params.q_scales = args.q_scales.as<float>(), params.k_scales = args.k_scales.as<float>();
    params.q_scale_stride = args.q_scales.row_stride();
    params.k_scale_stride = args.k_scales.row_stride();
  }
  allow_shared_memory(kernel);
  // Blocks of one head run at about the same time: its keys and values stay in the L2.
  const dim3 grid(static_cast<unsigned>((params.rows + tile.rows - 1) / tile.rows),
                  static_cast<unsigned>(args.heads / args.kv_heads),
                  static_cast<unsigned>(args.kv_heads));
  void* arguments[] = {&params};
  check_cuda(
      cudaLaunchKernel(kernel.code, grid, dim3(static_cast<unsigned>(tile.threads())), arguments,
                       static_cast<size_t>(kernel.shared_bytes), device_.stream()),
      kernel.name);
}

void FlashLauncher::launch_sm90(const FlashKernel& kernel, const HopperFlashTile& tile,
                                const AttentionArgs& args) {
  const Shares shares = share(tile, args);
  const int teams = tile.groups * tile.cluster;
  HopperFlashParams params{};
  params.out = args.out.data, params.out_stride = stride_of(args.out);
  params.rows = static_cast<int>(args.rows());
  params.keys = static_cast<int>(args.keys());
  params.heads = static_cast<int>(args.heads);
  params.sharing = static_cast<int>(args.heads / args.kv_heads);
  params.scale_log2 = scale_log2(args);
  params.causal = args.causal;
  if (tile.int8) {
    params.q_scale = args.q_scales.as<float>(), params.q_scale_stride = args.q_scales.row_stride();
    params.k_scale = args.k_scales.as<float>(), params.k_scale_stride = args.k_scales.row_stride();
  }
  if (tile.int8_values) {
    params.v_scale = args.v_scales.as<float>();
    params.v_scale_stride = static_cast<int>(args.v_scales.row_stride());
  }
  params.tiles_per_head = shares.tiles_per_head;
  params.k_steps = shares.k_steps;
  params.whole_tiles = shares.whole_tiles;
  const int64_t shared_tiles = params.tile_count() - params.whole_tiles;
  if (shared_tiles > 0) {
    // work_list.cuh multiplies these in 32 bits.
    check(shared_tiles * shares.k_steps * (shares.workers + 1) <= UINT32_MAX,
          "attention: {} would share too many keys, {}", kernel.name, args.keys());
    // A thread's accumulators, and two rows' maxima and sums.
    const size_t state = size_t{128} * (static_cast<size_t>(tile.head_dim) / 2 + 4) * sizeof(float);
    const size_t bytes = size_t{2} * shares.workers * teams * state;
    params.partials = reinterpret_cast<float*>(device_.at_least(partials_, bytes));
    const size_t arrival_bytes =
        static_cast<size_t>(device_.traits().multiprocessors * teams) * sizeof(uint32_t);
    if (arrivals_.bytes() < arrival_bytes) {
      arrivals_ = device_.allocate(arrival_bytes);
      check_cuda(cudaMemsetAsync(arrivals_.data(), 0, arrivals_.bytes(), device_.stream()),
                 "clearing counters");
    }
    params.arrivals = reinterpret_cast<uint32_t*>(arrivals_.data());
  }
  FlashMaps maps;
  maps.q = map_of(args.q, tile.rows(), tile.score_boxes());
  maps.k = map_of(args.k, tile.keys, tile.score_boxes() / tile.cluster);
  static_assert(HopperFlashTile::kCodedKeys == QuantizedValues::kKeys);
  maps.v = tile.int8_values ? map_of(args.v, tile.head_dim / tile.cluster, 1)
                            : map_of(args.v, tile.keys, tile.value_boxes() / tile.cluster);

  allow_shared_memory(kernel);
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(tile.cluster), 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(shares.workers * tile.cluster));
  config.blockDim = dim3(static_cast<unsigned>(tile.threads()));
  config.dynamicSmemBytes = static_cast<size_t>(kernel.shared_bytes);
  config.stream = device_.stream();
  config.attrs = &cluster;
  config.numAttrs = 1;
  void* arguments[] = {&params, &maps};
  check_cuda(cudaLaunchKernelExC(&config, kernel.code, arguments), kernel.name);
}

}  // namespace octet::cuda
