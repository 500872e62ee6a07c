// The rows of kFlashTiles (mma.sync) in turns, without pause: slices of a tenth of a second, three
// rounds, medians. Build and run, in this folder, on any GPU from sm_80 on that can hold the tiles:
//   nvcc -std=c++20 -O3 --fmad=false --expt-relaxed-constexpr -arch=native -I../../src
//     -I../../include mma_sync.cu ../../src/cuda/attention/flash_sm80.cu -o mma_sync && ./mma_sync
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <numbers>
#include <vector>

#include "cuda/attention/flash_table.h"

using namespace octet::cuda;

namespace {

constexpr int kLength = 4096, kColumns = 4608;

__device__ uint32_t mixed(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

// About normal, of deviation 1: the sum of twelve uniform numbers.
__device__ float normal(uint32_t seed) {
  float sum = -6;
  for (uint32_t i = 0; i < 12; ++i) sum += mixed(seed * 12 + i) * 0x1p-32f;
  return sum;
}

__global__ void fill(__nv_bfloat16* numbers, signed char* codes, uint32_t seed, size_t count) {
  const size_t at = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  if (at >= count) return;
  const float x = normal(seed + static_cast<uint32_t>(at));
  numbers[at] = __float2bfloat16(x);
  codes[at] = static_cast<signed char>(fminf(fmaxf(rintf(x * 40), -127), 127));
}

__global__ void fill_scales(float* scales, size_t count) {
  const size_t at = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  if (at < count) scales[at] = 1 / 40.0f;
}

template <class T>
T* allocate(size_t count) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, count * sizeof(T)) != cudaSuccess) std::puts("no memory"), std::exit(1);
  return static_cast<T*>(memory);
}

}  // namespace

int main() {
  const size_t count = size_t{kLength} * kColumns;
  const auto blocks = static_cast<unsigned>((count + 255) / 256);
  __nv_bfloat16* numbers[3];
  signed char* codes[3];
  for (uint32_t i = 0; i < 3; ++i) {
    numbers[i] = allocate<__nv_bfloat16>(count), codes[i] = allocate<signed char>(count);
    fill<<<blocks, 256>>>(numbers[i], codes[i], i * 0x10000000u, count);
  }
  auto* out = allocate<std::byte>(count * 2);
  auto* scales = allocate<float>(size_t{72} * kLength);
  fill_scales<<<72 * kLength / 256, 256>>>(scales, size_t{72} * kLength);

  std::vector<std::vector<double>> times(std::size(kFlashTiles));
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < std::size(kFlashTiles); ++i) {
      const FlashTile& tile = kFlashTiles[i];
      const int heads = kColumns / tile.head_dim;
      FlashParams params{};
      const auto part = [&](int which) {
        return tile.int8 && which < 2 ? reinterpret_cast<const std::byte*>(codes[which])
                                      : reinterpret_cast<const std::byte*>(numbers[which]);
      };
      params.q = part(0), params.k = part(1), params.v = part(2), params.out = out;
      params.q_stride = params.k_stride = tile.int8 ? kColumns : 2 * kColumns;
      params.v_stride = params.out_stride = 2 * kColumns;
      params.rows = params.keys = kLength, params.head_bytes = 2 * tile.head_dim;
      params.scale_log2 =
          static_cast<float>(std::numbers::log2e / std::sqrt(double(tile.head_dim)));
      params.q_scales = params.k_scales = scales;
      params.q_scale_stride = params.k_scale_stride = kLength;
      const void* code = flash_code()[i];
      if (cudaFuncSetAttribute(code, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               tile.shared_bytes()) != cudaSuccess) {
        cudaGetLastError();
        continue;  // more than this GPU has
      }
      const dim3 grid((kLength + tile.rows - 1) / tile.rows, 1, static_cast<unsigned>(heads));
      void* arguments[] = {&params};
      const auto launch = [&] {
        cudaLaunchKernel(code, grid, dim3(static_cast<unsigned>(tile.threads())), arguments,
                         static_cast<size_t>(tile.shared_bytes()), nullptr);
      };
      launch();
      cudaDeviceSynchronize();
      const auto start = std::chrono::steady_clock::now();
      const auto passed = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      };
      int runs = 0;
      for (; passed() < 0.1; runs += 20) {
        for (int j = 0; j < 20; ++j) launch();
        cudaDeviceSynchronize();
      }
      times[i].push_back(passed() / runs * 1e6);
      if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) {
        std::printf("%s\n", cudaGetErrorString(error));
        return 1;
      }
    }
  }
  std::puts("head rows keys stages  scores      us  TFLOPS");
  for (size_t i = 0; i < std::size(kFlashTiles); ++i) {
    const FlashTile& tile = kFlashTiles[i];
    if (times[i].empty()) continue;
    std::sort(times[i].begin(), times[i].end());
    const double us = times[i][1];
    std::printf("%4d %4d %4d %6d  %6s %7.0f %7.0f\n", tile.head_dim, tile.rows, tile.keys,
                tile.stages, tile.int8 ? "int8" : "bf16", us,
                4.0 * kLength * kLength * kColumns / us * 1e-6);
  }
}
