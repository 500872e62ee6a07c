// From int32 accumulators to outputs, by the numeric contract of backend/gemm.h: every step is one
// IEEE operation (the _rn intrinsics are never contracted), so all backends give the same bits.
//
// A fusion is one specialisation of FusedColumns: what it needs to know about eight neighbouring
// columns, and what it does to eight scaled accumulators of one row.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "backend/exact_silu.h"
#include "backend/fusion.h"
#include "cuda/gemm/params.h"
#include "cuda/ptx/global.cuh"
#include "cuda/ptx/l2_policy.cuh"
#include "cuda/ptx/registers.cuh"
#include "cuda/ptx/shared.cuh"

namespace octet::cuda {

// Types of outputs that share code: bf16; f16; f32 and i32.
template <OutType kType>
inline constexpr int kBytesOf = kType == OutType::bf16 || kType == OutType::f16 ? 2 : 4;

inline constexpr int kNeighbours = 8;  // columns that a thread holds side by side

// Columns that are finished at a time: 16 bytes of outputs, unless the fusion halves them.
template <OutType kType>
inline constexpr int kChunk = 16 / kBytesOf<kType>;

// Scales of columns in global memory. Vectors of n can be read up to the next multiple of eight,
// see params.h.
struct GlobalScales {
  const float* at;
  __device__ float4 four(int offset, bool wanted) const {
    return ptx::load_if(wanted, at + offset);
  }
};

// In shared memory, where reading those of columns that do not exist does no harm.
struct SharedScales {
  uint32_t at;
  __device__ float4 four(int offset, bool) const { return ptx::shared_load_four(at + 4 * offset); }
};

template <class Scales, int kCount>
__device__ __forceinline__ void load_columns(float (&values)[kCount], const Scales& scales,
                                             int offset, bool wanted) {
#pragma unroll
  for (int i = 0; i < kCount; i += 4) {
    const float4 four = scales.four(offset + i, wanted);
    values[i] = four.x, values[i + 1] = four.y, values[i + 2] = four.z, values[i + 3] = four.w;
  }
}

// Accumulators per output.
template <Fusion F>
inline constexpr int kShrink = kFusions[static_cast<int>(F)].gated ? 2 : 1;

template <Fusion F>
struct FusedColumns {
  static_assert(F != F, "a new fusion needs its specialisation of FusedColumns");
};

template <>
struct FusedColumns<Fusion::none> {
  __device__ FusedColumns(const GemmParams&, int, bool) {}
  template <int kCount>
  __device__ __forceinline__ void apply(float (&)[kCount]) const {}
};

template <>
struct FusedColumns<Fusion::bias> {
  const float* bias;
  bool wanted;
  __device__ FusedColumns(const GemmParams& params, int column, bool wanted_)
      : bias(params.bias + column), wanted(wanted_) {}
  // Loaded for each row: kept in registers, the bias of eight columns would be too much.
  template <int kCount>
  __device__ __forceinline__ void apply(float (&y)[kCount]) const {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const float4 four = ptx::load_again_if(wanted, bias + i);
      y[i] = __fadd_rn(y[i], four.x), y[i + 1] = __fadd_rn(y[i + 1], four.y);
      y[i + 2] = __fadd_rn(y[i + 2], four.z), y[i + 3] = __fadd_rn(y[i + 3], four.w);
    }
  }
};

template <>
struct FusedColumns<Fusion::swiglu> {
  __device__ FusedColumns(const GemmParams&, int, bool) {}
  template <int kCount>
  __device__ __forceinline__ void apply(float (&y)[kCount]) const {
#pragma unroll
    for (int i = 0; i < kCount / 2; ++i) y[i] = __fmul_rn(exact_silu(y[2 * i]), y[2 * i + 1]);
  }
};

// Neighbouring scaled accumulators of one row as outputs.
template <Fusion F, OutType kType>
__device__ __forceinline__ void finish_chunk(const GemmParams& params, const FusedColumns<F>& fused,
                                             const float (&col_scale)[kChunk<kType>],
                                             float row_scale, const int32_t (&acc)[kChunk<kType>],
                                             bool wanted, void* to, uint64_t l2_policy) {
  constexpr int kOutputs = kChunk<kType> / kShrink<F>;
  float y[kChunk<kType>];
#pragma unroll
  for (int i = 0; i < kChunk<kType>; ++i) {
    y[i] = __fmul_rn(__fmul_rn(__int2float_rn(acc[i]), row_scale), col_scale[i]);
  }
  fused.apply(y);
  uint32_t words[kOutputs * kBytesOf<kType> / 4];
  if constexpr (kBytesOf<kType> == 4) {
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) {
      const bool bare = F == Fusion::none && params.out_type == OutType::i32;
      words[i] = bare ? static_cast<uint32_t>(acc[i]) : __float_as_uint(y[i]);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kOutputs / 2; ++i) {
      if constexpr (kType == OutType::bf16) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(y[2 * i], y[2 * i + 1]);
        words[i] = reinterpret_cast<const uint32_t&>(pair);
      } else {
        const __half2 pair = __floats2half2_rn(y[2 * i], y[2 * i + 1]);
        words[i] = reinterpret_cast<const uint32_t&>(pair);
      }
    }
  }
  ptx::store_if(wanted, to, words, l2_policy);
}

// A warp's outputs: of kRows times 16 rows, kApart apart. [i][4 j + c / 2][2 h + c % 2] of thread
// t = lane % 4, g = lane / 4 is the accumulator at row kApart i + 8 h + g and column 32 j + 8 t + c
// from (row, column) on. Straight-line code whose only conditions are predicates of the stores: it
// runs once per tile, so each branch and each additional kilobyte would have to be fetched again.
// `col_scales`: from `column` on.
template <Fusion F, OutType kType, int kApart, class Scales, int kRows, int kColumns>
__device__ __forceinline__ void store_accumulators(const GemmParams& params, int row, int column,
                                                   const Scales& col_scales,
                                                   const int32_t (&acc)[kRows][kColumns][4]) {
  constexpr int kChunks = kNeighbours / kChunk<kType>;  // of a thread's eight columns of 32
  const int lane = static_cast<int>(ptx::thread_read_anew() % 32);
  const int first_row = row + lane / 4;
  const int own_columns = lane % 4 * kNeighbours, first_column = column + own_columns;
  const uint64_t l2_policy =
      params.out_streams ? ptx::evict_first_policy() : ptx::evict_normal_policy();
  float row_scale[kRows][2];
  unsigned char* to[kRows][2];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int own_row = first_row + kApart * i + 8 * h;
      row_scale[i][h] = __ldg(params.row_scale + static_cast<uint32_t>(min(own_row, params.m - 1)));
      to[i][h] = static_cast<unsigned char*>(params.out) +
                 (own_row * params.out_stride + first_column / kShrink<F>)*kBytesOf<kType>;
    }
  }
#pragma unroll
  for (int chunk = 0; chunk < kColumns / 4 * kChunks; ++chunk) {
    const int offset = chunk / kChunks * 32 + chunk % kChunks * kChunk<kType>;
    const bool has_columns = first_column + offset / 32 * 32 < params.n;
    float col_scale[kChunk<kType>];
    load_columns(col_scale, col_scales, own_columns + offset, has_columns);
    const FusedColumns<F> fused(params, first_column + offset, has_columns);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        int32_t of_row[kChunk<kType>];
#pragma unroll
        for (int j = 0; j < kChunk<kType>; ++j) {
          of_row[j] = acc[i][(chunk * kChunk<kType> + j) / 2][h * 2 + j % 2];
        }
        const bool wanted = first_row + kApart * i + 8 * h < params.m && has_columns;
        finish_chunk<F, kType>(params, fused, col_scale, row_scale[i][h], of_row, wanted,
                               to[i][h] + offset / kShrink<F> * kBytesOf<kType>, l2_policy);
      }
    }
  }
}

// Calls work(type) with a constant type, for which the outputs of `params` are stored.
template <class Work>
__device__ __forceinline__ void with_out_type(const GemmParams& params, Work work) {
  if (params.out_type == OutType::bf16) {
    work(std::integral_constant<OutType, OutType::bf16>());
  } else if (params.out_type == OutType::f16) {
    work(std::integral_constant<OutType, OutType::f16>());
  } else {
    work(std::integral_constant<OutType, OutType::f32>());
  }
}

}  // namespace octet::cuda
