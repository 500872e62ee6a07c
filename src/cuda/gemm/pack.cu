#include <algorithm>

#include "base/checked.h"
#include "cuda/gemm/pack.h"

namespace octet::cuda {
namespace {

constexpr int kPackThreads = 256;
constexpr int kPackedChunk = 16;  // bytes per thread
constexpr int64_t kChunksPerBlock = kBlockBytes / kPackedChunk;

// Where a row is permuted to, see pack.h.
__device__ int64_t place_of_row(int64_t row) {
  return (row & ~int64_t{31}) | (row & 6) << 2 | (row & 24) >> 2 | (row & 1);
}

// The output channel of a row, see QWeight::channel_of().
__device__ int64_t channel_of_row(int64_t n, bool gated, int64_t row) {
  const int64_t half = n / 2;
  if (!gated) return row;
  return row < half ? 2 * row : 2 * (row - half) + 1;
}
__device__ int64_t channel_of_row(const PackTarget& to, int64_t row) {
  return channel_of_row(to.n, to.gated, row);
}

// kVectors: every chunk of a row is an aligned vector.
template <bool kVectors>
__global__ void pack_rows_kernel(const int8_t* from, int64_t stride, int64_t rows,
                                 const PackTarget to, int64_t packed_n) {
  const int64_t k = to.k;
  const int64_t chunks = (k + kBlockBytes - 1) / kBlockBytes * kChunksPerBlock;  // of a row
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < rows * chunks;
       i += step) {
    const int64_t row = i / chunks;
    const int64_t chunk = i % chunks;
    const int8_t* source = from + row * stride + chunk * kPackedChunk;
    union {
      int8_t bytes[kPackedChunk];
      int4 vector;
    } value;
    if (kVectors && chunk * kPackedChunk < k) {
      value.vector = *reinterpret_cast<const int4*>(source);
    } else {
#pragma unroll
      for (int j = 0; j < kPackedChunk; ++j) {
        value.bytes[j] = chunk * kPackedChunk + j < k ? source[j] : static_cast<int8_t>(0);
      }
    }
    const int64_t block = chunk / kChunksPerBlock;
    const int64_t place = place_of_row(channel_of_row(to, to.first + row));
    int8_t* packed = to.values + (block * packed_n + place) * kBlockBytes;
    reinterpret_cast<int4*>(packed)[chunk % kChunksPerBlock] = value.vector;
  }
}

__global__ void pack_scales_kernel(const float* scales, const float* factors, int64_t rows,
                                   const PackTarget to) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float scale = factors == nullptr ? scales[row] : __fmul_rn(scales[row], factors[row]);
  to.col_scale[channel_of_row(to, to.first + row)] = scale;
}

template <class T>
__global__ void spread_columns_kernel(const T* from, bool shared, int64_t n, bool gated,
                                      float* to) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row < n) {
    to[channel_of_row(n, gated, row)] = to_f32(from[shared ? 0 : row]);
  } else if (row < (n + 7) / 8 * 8) {
    to[row] = 0;
  }
}

}  // namespace

bool can_stay_plain(const PlainWeight& weight) {
  const int64_t n = weight.codes.shape[0], k = weight.codes.shape[1];
  const int64_t stride = weight.codes.row_stride();
  return n > 0 && n % kPermutedRows == 0 && k > 0 && k % kPackedChunk == 0 &&
         stride % kPackedChunk == 0 &&
         reinterpret_cast<uintptr_t>(weight.codes.data) % kPackedChunk == 0 &&
         n * stride <= UINT32_MAX;
}

void launch_spread_columns(const ConstTensorView& from, int64_t n, bool gated, float* to,
                           CUstream_st* stream) {
  if (n == 0) return;
  const bool shared = from.shape[0] == 1;
  const auto launch = [&](const auto* values) {
    spread_columns_kernel<<<static_cast<unsigned>(ceil_div(n + 7, kPackThreads)), kPackThreads, 0,
                            stream>>>(values, shared, n, gated, to);
  };
  switch (from.dtype) {
    case DType::bf16: launch(from.as<bf16_t>()); break;
    case DType::f16: launch(from.as<f16_t>()); break;
    default: launch(from.as<float>()); break;
  }
}

int64_t packed_rows(int64_t n) { return (n + kPermutedRows - 1) / kPermutedRows * kPermutedRows; }

int64_t packed_bytes(int64_t n, int64_t k) {
  const int64_t blocks = std::max<int64_t>(1, (k + kBlockBytes - 1) / kBlockBytes);
  return blocks * packed_rows(n) * kBlockBytes + kReadPast;
}

void launch_pack_rows(const ConstTensorView& rows, const float* scales, const float* factors,
                      const PackTarget& to, CUstream_st* stream) {
  const int64_t count = rows.shape[0];
  if (count == 0) return;
  pack_scales_kernel<<<static_cast<unsigned>(ceil_div(count, kPackThreads)), kPackThreads, 0,
                       stream>>>(scales, factors, count, to);
  launch_pack_codes(rows, to, stream);
}

void launch_pack_codes(const ConstTensorView& rows, const PackTarget& to, CUstream_st* stream) {
  const int64_t count = rows.shape[0];
  const int64_t chunks = count * ceil_div(to.k, kBlockBytes) * kChunksPerBlock;
  if (chunks == 0) return;
  const auto* from = rows.as<int8_t>();
  const int64_t stride = count == 1 ? 0 : rows.row_stride();  // of one row it may be anything
  const bool vectors = to.k % kPackedChunk == 0 && stride % kPackedChunk == 0 &&
                       reinterpret_cast<uintptr_t>(from) % kPackedChunk == 0;
  const auto kernel = vectors ? pack_rows_kernel<true> : pack_rows_kernel<false>;
  const int64_t blocks = std::min<int64_t>(ceil_div(chunks, kPackThreads), 8192);
  kernel<<<static_cast<unsigned>(blocks), kPackThreads, 0, stream>>>(from, stride, count, to,
                                                                     packed_rows(to.n));
}

}  // namespace octet::cuda
