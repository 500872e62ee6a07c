// The epilogue of Fusion::rotary: a warpgroup holds whole attention heads, so each is normed and
// rotated before its one rounding. In f32, within the bounds of Backend::rotate_heads().
#pragma once

#include "cuda/gemm/epilogue.cuh"

namespace octet::cuda {

inline constexpr int kRotatedHead = 256;  // columns

template <OutType kType>
__device__ __forceinline__ void store_neighbours(bool wanted, unsigned char* to,
                                                 const float (&y)[kNeighbours]) {
  static_assert(kType == OutType::bf16 || kType == OutType::f32);
  if constexpr (kType == OutType::bf16) {
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(y[2 * i], y[2 * i + 1]);
      words[i] = reinterpret_cast<const uint32_t&>(pair);
    }
    ptx::store_if(wanted, to, words);
  } else {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint32_t words[4] = {__float_as_uint(y[4 * i]), __float_as_uint(y[4 * i + 1]),
                                 __float_as_uint(y[4 * i + 2]), __float_as_uint(y[4 * i + 3])};
      ptx::store_if(wanted, to + 16 * i, words);
    }
  }
}

// Eight floats that are not kept in registers before they are needed.
__device__ __forceinline__ void load_neighbours(float (&values)[kNeighbours], const float* from) {
#pragma unroll
  for (int i = 0; i < kNeighbours; i += 4) {
    const float4 four = ptx::load_again_if(true, from + i);
    values[i] = four.x, values[i + 1] = four.y, values[i + 2] = four.z, values[i + 3] = four.w;
  }
}

// A warp's outputs of 16 rows and one head, as store_accumulators() has them: a row of the head is
// in four adjacent lanes, and the columns c and c + 128 of a pair are in the same one.
template <OutType kType>
__device__ __forceinline__ void store_head(const GemmParams& params, int row, int column,
                                           int32_t (&acc)[kRotatedHead / 8][4]) {
  constexpr int kHalf = kRotatedHead / 2;
  constexpr unsigned kAll = 0xffffffffu;
  const int lane = static_cast<int>(ptx::thread_read_anew() % 32);
  const int first_row = row + lane / 4;
  const int own = lane % 4 * kNeighbours;  // of 32 columns
  const RotatedHeads& heads = params.heads;
  const float* weight = (column < heads.q_columns ? heads.q_weight : heads.k_weight) + own;
  float row_scale[2], factor[2] = {};
  uint32_t angles[2];  // of 32 bits, which GemmLauncher::refusal() sees to
  unsigned char* to[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int own_row = first_row + 8 * h;
    const int read_row = min(own_row, params.m - 1);
    row_scale[h] = __ldg(params.row_scale + read_row);
    angles[h] = static_cast<uint32_t>(read_row) * kHalf + own;
    to[h] = static_cast<unsigned char*>(params.out) +
            (own_row * params.out_stride + column + own) * kBytesOf<kType>;
  }
  // The scaled accumulators take the places of the accumulators.
#pragma unroll
  for (int j = 0; j < kRotatedHead / 32; ++j) {
    float col_scale[kNeighbours];
    load_neighbours(col_scale, params.col_scale + column + own + 32 * j);
#pragma unroll
    for (int i = 0; i < 2 * kNeighbours; ++i) {
      const int h = i / kNeighbours, c = i % kNeighbours;
      int32_t& at = acc[4 * j + c / 2][2 * h + c % 2];
      const float y = __fmul_rn(__fmul_rn(__int2float_rn(at), row_scale[h]), col_scale[c]);
      factor[h] = __fmaf_rn(y, y, factor[h]);
      at = __float_as_int(y);
    }
    // Here ptxas stops loading ahead, for which there are no registers.
    if (j % 2 == 1) __syncwarp();
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    factor[h] += __shfl_xor_sync(kAll, factor[h], 1);
    factor[h] += __shfl_xor_sync(kAll, factor[h], 2);
    factor[h] = rsqrtf(__fmaf_rn(factor[h], 1.0f / kRotatedHead, heads.eps));
  }
#pragma unroll
  for (int j = 0; j < kHalf / 32; ++j) {
    float weight_low[kNeighbours], weight_high[kNeighbours];
    float cos[2][kNeighbours], sin[2][kNeighbours];
    load_neighbours(weight_low, weight + 32 * j);
    load_neighbours(weight_high, weight + 32 * j + kHalf);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      load_neighbours(cos[h], heads.cos + angles[h] + 32 * j);
      load_neighbours(sin[h], heads.sin + angles[h] + 32 * j);
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float low[kNeighbours], high[kNeighbours];
#pragma unroll
      for (int c = 0; c < kNeighbours; ++c) {
        const auto normed = [&](int part, float by) {
          return __int_as_float(acc[4 * part + c / 2][2 * h + c % 2]) * factor[h] * by;
        };
        const float u = normed(j, weight_low[c]);
        const float v = normed(j + kHalf / 32, weight_high[c]);
        low[c] = __fmaf_rn(u, cos[h][c], -(v * sin[h][c]));
        high[c] = __fmaf_rn(v, cos[h][c], u * sin[h][c]);
      }
      const bool wanted = first_row + 8 * h < params.m;
      store_neighbours<kType>(wanted, to[h] + 32 * j * kBytesOf<kType>, low);
      store_neighbours<kType>(wanted, to[h] + (32 * j + kHalf) * kBytesOf<kType>, high);
    }
  }
}

// The same for columns of q, k or v. Columns begin at multiples of a head.
template <OutType kType>
__device__ __forceinline__ void store_rotated(const GemmParams& params, int row, int column,
                                              int32_t (&acc)[kRotatedHead / 8][4]) {
  if (column < params.heads.rotated_columns) {
    store_head<kType>(params, row, column, acc);
  } else {
    store_accumulators<Fusion::none, kType>(params, row, column, acc);
  }
}

}  // namespace octet::cuda
