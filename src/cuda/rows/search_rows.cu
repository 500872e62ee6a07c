// Row quantization with a searched scale: a block takes a row, finds its largest magnitude, the
// squared error of each ratio, and writes the codes of the best.
//
// The transformed row stays in shared memory. One that does not fit goes through it in tiles, which
// are read again (from L2) for each of these passes; the rotation's groups divide a tile's width.
#include <algorithm>

#include "backend/ops.h"
#include "cuda/rows/any_rows.cuh"
#include "cuda/rows/row_kernels.h"
#include "cuda/rows/row_scale.cuh"

namespace octet::cuda {
namespace {

constexpr int kSearchColumns = 24576;  // 96 KB: what every GPU since Ampere can give a block
constexpr int kRatioBatch = 8;         // ratios whose sums a thread holds in registers
constexpr unsigned kAllLanes = 0xffffffffu;

struct SearchArgs {
  AnyRows x;
  const float* smooth;  // [k] or null
  int8_t* q;            // [rows, k]
  float* scales;        // [rows]
  int64_t q_stride;
  int group;         // of the rotation, or 0
  int tile_columns;  // k, or less: then a multiple of every group
  int ratio_count;
  float ratios[kMaxClipRatios];
};

// A transformed row, seen by a block's threads through the tile in shared memory.
class TiledRow {
 public:
  __device__ TiledRow(const SearchArgs& args, int64_t row, float* tile)
      : args_(args), row_(row), tile_(tile), factor_(rotation_factor(args.group)) {}

  // Calls use(column, value) for the thread's share of the transformed row.
  template <class Use>
  __device__ void for_each_value(Use use) {
    for (int64_t first = 0; first < args_.x.k; first += args_.tile_columns) {
      const int columns =
          static_cast<int>(min(args_.x.k - first, static_cast<int64_t>(args_.tile_columns)));
      if (first != in_tile_) fill(first, columns);
      for (int i = static_cast<int>(threadIdx.x); i < columns; i += kAnyThreads) {
        use(first + i, __fmul_rn(tile_[i], factor_));
      }
    }
  }

 private:
  __device__ void fill(int64_t first, int columns) {
    // Without a rotation a thread meets only what it wrote itself.
    if (args_.group > 0) __syncthreads();  // the tile before is still in use
    for (int i = static_cast<int>(threadIdx.x); i < columns; i += kAnyThreads) {
      float value = args_.x.at(row_, first + i);
      if (args_.smooth != nullptr) value = __fmul_rn(value, args_.smooth[first + i]);
      tile_[i] = value;
    }
    if (args_.group > 0) rotate_tile(tile_, columns, args_.group);
    in_tile_ = first;
  }

  const SearchArgs& args_;
  int64_t row_;
  float* tile_;
  float factor_;
  int64_t in_tile_ = -1;  // its first column
};

__device__ inline float clamp_to_codes(float scaled) {
  return fminf(fmaxf(scaled, -127.0f), 127.0f);
}

// (scaled - its code) in units of 1/256. Sums whose ulp is 1, and 1/256, do the two roundings.
__device__ inline int residual(float scaled) {
  constexpr float kUlpIsFraction = 49152.0f;  // 1.5 * 2^15
  const float code = __fsub_rn(__fadd_rn(clamp_to_codes(scaled), kUlpIsOne), kUlpIsOne);
  const float shifted = __fadd_rn(__fsub_rn(scaled, code), kUlpIsFraction);
  return __float_as_int(shifted) - __float_as_int(kUlpIsFraction);
}

// Adds up, for all ratios, the row's squared residuals; sums start at 0. They are integers, the
// same in any order. The caller needs a barrier before reading them.
__device__ void add_squared_residuals(const SearchArgs& args, float amax, TiledRow& row,
                                      unsigned long long* sums) {
  for (int begin = 0; begin < args.ratio_count; begin += kRatioBatch) {
    float inverse[kRatioBatch];
    long long squares[kRatioBatch];
#pragma unroll
    for (int r = 0; r < kRatioBatch; ++r) {
      // The constructor's 0 if there is no scale; 0 beyond the last ratio, too.
      const bool there = begin + r < args.ratio_count;
      const float ratio = args.ratios[there ? begin + r : 0];
      inverse[r] = there ? RowScale(__fmul_rn(amax, ratio)).inverse : 0.0f;
      squares[r] = 0;
    }
    row.for_each_value([&](int64_t, float value) {
#pragma unroll
      for (int r = 0; r < kRatioBatch; ++r) {
        const long long whole = residual(__fmul_rn(value, inverse[r]));
        squares[r] += whole * whole;
      }
    });
#pragma unroll
    for (int r = 0; r < kRatioBatch; ++r) {
#pragma unroll
      for (int mask = 1; mask < 32; mask *= 2) {
        squares[r] += __shfl_xor_sync(kAllLanes, squares[r], mask);
      }
      if (threadIdx.x % 32 == 0 && begin + r < args.ratio_count) {
        atomicAdd(&sums[begin + r], static_cast<unsigned long long>(squares[r]));
      }
    }
  }
}

// The part of amax with the smallest error.
__device__ float best_limit(const SearchArgs& args, float amax, const unsigned long long* sums) {
  float best = amax;
  double smallest = 0;
  for (int r = 0; r < args.ratio_count; ++r) {
    const RowScale clipped(__fmul_rn(amax, args.ratios[r]));
    if (clipped.inverse == 0.0f) continue;  // too small a part of amax for a scale
    const double scale = clipped.scale();
    const double sum = __ll2double_rn(static_cast<long long>(sums[r]));
    const double error = __dmul_rn(__dmul_rn(sum, scale), scale);
    if (r == 0 || error < smallest) {
      smallest = error;
      best = clipped.amax;
    }
  }
  return best;
}

__global__ void __launch_bounds__(kAnyThreads, 2)
    search_rows_kernel(const __grid_constant__ SearchArgs args) {
  extern __shared__ float tile[];  // [tile_columns]
  __shared__ unsigned long long sums[kMaxClipRatios];
  __shared__ uint32_t row_amax;
  __shared__ float row_limit;
  for (int64_t row = blockIdx.x; row < args.x.rows; row += gridDim.x) {
    __syncthreads();  // all are done with the row before
    if (threadIdx.x == 0) row_amax = 0;
    if (threadIdx.x < kMaxClipRatios) sums[threadIdx.x] = 0;
    __syncthreads();

    TiledRow values(args, row, tile);
    float largest = 0.0f;
    values.for_each_value([&](int64_t, float value) { largest = max_magnitude(largest, value); });
    atomicMax(&row_amax, __float_as_uint(largest));
    __syncthreads();

    const float amax = __uint_as_float(row_amax);
    float limit = amax;
    // The same for all threads. A row without a scale, and a single ratio, need no search.
    if (args.ratio_count > 1 && RowScale(amax).inverse != 0.0f) {
      add_squared_residuals(args, amax, values, sums);
      __syncthreads();
      if (threadIdx.x == 0) row_limit = best_limit(args, amax, sums);
      __syncthreads();
      limit = row_limit;
    }

    const RowScale scale(limit);
    if (threadIdx.x == 0) args.scales[row] = scale.scale();
    int8_t* q = args.q + row * args.q_stride;
    values.for_each_value([&](int64_t column, float value) {
      const float scaled = clamp_to_codes(__fmul_rn(value, scale.inverse));
      const uint32_t byte = scale.finite() ? rounded_byte(scaled) : 0;
      q[column] = static_cast<int8_t>(byte & 0xffu);
    });
  }
}

}  // namespace

void launch_quantize_rows_searched(const ConstTensorView& x, const ActivationTransform& transform,
                                   std::span<const float> ratios, const QTensor& out,
                                   int multiprocessors, CUstream_st* stream) {
  if (x.shape[0] == 0) return;
  SearchArgs args{
      .x = AnyRows(x),
      .smooth = transform.kind == Transform::smooth ? transform.smooth.as<float>() : nullptr,
      .q = out.values.as<int8_t>(),
      .scales = out.scales.as<float>(),
      .q_stride = out.values.row_stride(),
      .group = transform.kind == Transform::rotate ? static_cast<int>(transform.group) : 0,
      .tile_columns = static_cast<int>(std::min<int64_t>(x.shape[1], kSearchColumns)),
      .ratio_count = static_cast<int>(ratios.size()),
      .ratios = {}};
  std::copy(ratios.begin(), ratios.end(), args.ratios);
  const int shared_bytes = args.tile_columns * static_cast<int>(sizeof(float));
  // More than 48 KB, including the kernel's own, has to be requested.
  if (shared_bytes > (40 << 10)) {
    cudaFuncSetAttribute(search_rows_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         shared_bytes);
  }
  const int64_t resident = static_cast<int64_t>(multiprocessors) * 4;
  const auto blocks = static_cast<unsigned>(std::min(args.x.rows, resident));
  search_rows_kernel<<<blocks, kAnyThreads, shared_bytes, stream>>>(args);
}

}  // namespace octet::cuda
