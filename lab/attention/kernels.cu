// The rows of kHopperFlashTiles behind a C function, for compare.py. Build, in this folder:
//   nvcc -std=c++20 -O3 --fmad=false --expt-relaxed-constexpr -diag-suppress=554
//     -gencode=arch=compute_90a,code=sm_90a -I../../src -I../../include -Xcompiler -fPIC -shared
//     kernels.cu ../../src/cuda/attention/flash_sm90.cu -o libkernels.so
#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include <cmath>
#include <iterator>
#include <numbers>

#include "cuda/attention/flash_params_sm90.h"
#include "cuda/attention/flash_table.h"

using namespace octet::cuda;

namespace {

CUtensorMap map_of(const void* data, int64_t rows, int64_t row_bytes, int64_t stride, int box_rows,
                   int boxes) {
  static const auto encode = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault,
                                     &result);
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(found);
  }();
  const cuuint64_t sizes[3] = {128, static_cast<cuuint64_t>(rows),
                               static_cast<cuuint64_t>(row_bytes / 128)};
  const cuuint64_t strides[2] = {static_cast<cuuint64_t>(stride), 128};
  const cuuint32_t box[3] = {128, static_cast<cuuint32_t>(box_rows),
                             static_cast<cuuint32_t>(boxes)};
  const cuuint32_t steps[3] = {1, 1, 1};
  CUtensorMap map;
  encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3, const_cast<void*>(data), sizes, strides, box,
         steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
         CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return map;
}

}  // namespace

extern "C" int kernel_count() { return static_cast<int>(std::size(kHopperFlashTiles)); }

// head_dim, keys, stages, warpgroups, cluster, int8, alternates, int8_values
extern "C" void describe(int kernel, int* out) {
  const HopperFlashTile& t = kHopperFlashTiles[kernel];
  const int fields[] = {t.head_dim, t.keys, t.stages,     t.groups,
                        t.cluster,  t.int8, t.alternates, t.int8_values};
  for (size_t i = 0; i < std::size(fields); ++i) out[i] = fields[i];
}

// Strides in bytes, those of scales in floats; v with its scales as QuantizedValues has them where
// the kernel's values are INT8. `shares`: whether the last round's keys are shared.
// Returns CUDA's error.
extern "C" int attend(int kernel, const void* q, long q_stride, const void* k, long k_stride,
                      const void* v, long v_stride, void* out, long out_stride,
                      const float* q_scale, long q_scale_stride, const float* k_scale,
                      long k_scale_stride, const float* v_scale, long v_scale_stride, int rows,
                      int keys, int heads, int kv_heads, int causal, int shares, void* stream) {
  const HopperFlashTile& t = kHopperFlashTiles[kernel];
  const void* code = hopper_flash_code()[static_cast<size_t>(kernel)];
  static float* partials = nullptr;
  static unsigned* arrivals = nullptr;
  if (partials == nullptr) {
    cudaMalloc(&partials, 160 << 20);
    cudaMalloc(&arrivals, 1 << 20);
    cudaMemset(arrivals, 0, 1 << 20);
  }
  const int64_t score_bytes = int64_t{t.head_dim} * (t.int8 ? 1 : 2);
  FlashMaps maps;
  maps.q = map_of(q, rows, heads * score_bytes, q_stride, t.rows(), t.score_boxes());
  maps.k = map_of(k, keys, kv_heads * score_bytes, k_stride, t.keys, t.score_boxes() / t.cluster);
  maps.v = t.int8_values ? map_of(v, int64_t{kv_heads} * t.head_dim, (keys + 127) / 128 * 128,
                                  v_stride, t.head_dim / t.cluster, 1)
                         : map_of(v, keys, int64_t{kv_heads} * t.head_dim * 2, v_stride, t.keys,
                                  t.value_boxes() / t.cluster);
  HopperFlashParams params{};
  params.out = static_cast<std::byte*>(out), params.out_stride = out_stride;
  params.q_scale = q_scale, params.q_scale_stride = q_scale_stride;
  params.k_scale = k_scale, params.k_scale_stride = k_scale_stride;
  params.v_scale = v_scale, params.v_scale_stride = static_cast<int>(v_scale_stride);
  params.rows = rows, params.keys = keys, params.heads = heads;
  params.sharing = heads / kv_heads;
  params.scale_log2 = static_cast<float>(std::numbers::log2e / std::sqrt(double(t.head_dim)));
  params.causal = causal != 0;
  const int per_tile = t.rows() * t.cluster;
  params.tiles_per_head = (rows + per_tile - 1) / per_tile;
  params.k_steps = (keys + t.keys - 1) / t.keys;
  int multiprocessors = 0;
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0);
  int workers = multiprocessors / t.cluster;
  const int tiles = params.tile_count();
  params.whole_tiles = !causal && shares ? tiles / workers * workers : tiles;
  if (params.whole_tiles == tiles && tiles < workers) workers = tiles;
  params.partials = partials, params.arrivals = arrivals;
  cudaFuncSetAttribute(code, cudaFuncAttributeMaxDynamicSharedMemorySize, t.shared_bytes());
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(t.cluster), 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(workers * t.cluster));
  config.blockDim = dim3(static_cast<unsigned>(t.threads()));
  config.dynamicSmemBytes = static_cast<size_t>(t.shared_bytes());
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = &cluster;
  config.numAttrs = 1;
  void* arguments[] = {&params, &maps};
  return cudaLaunchKernelExC(&config, code, arguments);
}
