// From int32 sums to outputs, by the numeric contract of backend/gemm.h: every step is one IEEE
// operation (the _rn intrinsics are never contracted), so all backends give the same bits.
//
// A fusion is one specialisation of FusedColumns: what it needs to know about eight neighbouring
// columns, and what becomes of eight scaled sums of one row.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "backend/exact_silu.h"
#include "backend/fusion.h"
#include "cuda/gemm/mainloop_sm80.cuh"
#include "cuda/ptx/global.cuh"

namespace octet::cuda {

inline constexpr int kGroup = 8;  // columns that a thread holds side by side

// Of the eight columns from `column` on. Vectors of n floats can be read up to the next multiple of
// eight, see params.h.
__device__ __forceinline__ void load_columns(float (&values)[kGroup], const float* vector,
                                             int column, int n) {
  const auto* from =
      reinterpret_cast<const float4*>(vector + static_cast<uint32_t>(column < n ? column : 0));
  const float4 low = __ldg(from);
  const float4 high = __ldg(from + 1);
  values[0] = low.x, values[1] = low.y, values[2] = low.z, values[3] = low.w;
  values[4] = high.x, values[5] = high.y, values[6] = high.z, values[7] = high.w;
}

template <Fusion F>
struct FusedColumns {  // none
  static constexpr int kOutputs = kGroup;
  __device__ FusedColumns(const GemmParams&, int) {}
  __device__ __forceinline__ void apply(float (&)[kGroup]) const {}
};

template <>
struct FusedColumns<Fusion::bias> {
  static constexpr int kOutputs = kGroup;
  const float* bias;
  __device__ FusedColumns(const GemmParams& params, int column)
      : bias(params.bias + static_cast<uint32_t>(column < params.n ? column : 0)) {}
  // Loaded for each row: kept in registers, the bias of eight columns would be too much.
  __device__ __forceinline__ void apply(float (&y)[kGroup]) const {
    const float4 low = ptx::load_again(bias);
    const float4 high = ptx::load_again(bias + 4);
    y[0] = __fadd_rn(y[0], low.x), y[1] = __fadd_rn(y[1], low.y);
    y[2] = __fadd_rn(y[2], low.z), y[3] = __fadd_rn(y[3], low.w);
    y[4] = __fadd_rn(y[4], high.x), y[5] = __fadd_rn(y[5], high.y);
    y[6] = __fadd_rn(y[6], high.z), y[7] = __fadd_rn(y[7], high.w);
  }
};

template <>
struct FusedColumns<Fusion::swiglu> {
  static constexpr int kOutputs = kGroup / 2;
  __device__ FusedColumns(const GemmParams&, int) {}
  __device__ __forceinline__ void apply(float (&y)[kGroup]) const {
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) y[i] = __fmul_rn(exact_silu(y[2 * i]), y[2 * i + 1]);
  }
};

// Eight scaled sums of one row as outputs of 16 (bf16, f16) or 32 bits (f32, i32).
template <Fusion F, int kBits>
__device__ __forceinline__ void finish_row(const GemmParams& params, const FusedColumns<F>& fused,
                                           const float (&col_scale)[kGroup], float row_scale,
                                           const int32_t (&sums)[kGroup], bool wanted, void* to) {
  constexpr int kOutputs = FusedColumns<F>::kOutputs;
  float y[kGroup];
#pragma unroll
  for (int i = 0; i < kGroup; ++i) {
    y[i] = __fmul_rn(__fmul_rn(__int2float_rn(sums[i]), row_scale), col_scale[i]);
  }
  fused.apply(y);
  uint32_t words[kOutputs * kBits / 32];
  if constexpr (kBits == 32) {
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) {
      const bool bare = F == Fusion::none && params.out_type == OutType::i32;
      words[i] = bare ? static_cast<uint32_t>(sums[i]) : __float_as_uint(y[i]);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kOutputs / 2; ++i) {
      const __nv_bfloat162 bf16 = __floats2bfloat162_rn(y[2 * i], y[2 * i + 1]);
      const __half2 f16 = __floats2half2_rn(y[2 * i], y[2 * i + 1]);
      words[i] = params.out_type == OutType::bf16 ? reinterpret_cast<const uint32_t&>(bf16)
                                                  : reinterpret_cast<const uint32_t&>(f16);
    }
  }
  ptx::store_if(wanted, to, words);
}

// All outputs of this warp, see Mainloop::Sums for which thread holds which. Straight-line code
// whose only conditions are predicates of the stores: it runs once per tile, so each branch and
// each further kilobyte would be fetched anew.
template <Tile T, Fusion F, int kBits>
__device__ __forceinline__ void store_tile(const GemmParams& params, TilePlace place,
                                           const typename Mainloop<T>::Sums& sums) {
  constexpr int kShrink = kGroup / FusedColumns<F>::kOutputs;
  constexpr int kHalves = 2 * Mainloop<T>::kRows;  // rows that a thread has, eight apart
  const WarpPlace<T> warp;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int last_row = params.m - 1;
  const int first_row = place.row * T.m + warp.m * T.warp_m() + lane / 4;
  const int first_column = place.column * T.n + warp.n * T.warp_n() + lane % 4 * kGroup;
#pragma unroll
  for (int group = 0; group < Mainloop<T>::kColumns / 4; ++group) {
    const int column = first_column + 32 * group;
    float col_scale[kGroup];
    load_columns(col_scale, params.col_scale, column, params.n);
    const FusedColumns<F> fused(params, column);
    auto* to = static_cast<unsigned char*>(params.out) +
               (first_row * params.out_stride + column / kShrink) * (kBits / 8);
#pragma unroll
    for (int i = 0; i < kHalves; ++i) {
      int32_t of_row[kGroup];
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        of_row[j] = sums[i / 2][4 * group + j / 2][i % 2 * 2 + j % 2];
      }
      const int row = first_row + 8 * i;
      const bool wanted = row < params.m && column < params.n;
      const float row_scale = __ldg(params.row_scale + static_cast<uint32_t>(min(row, last_row)));
      finish_row<F, kBits>(params, fused, col_scale, row_scale, of_row, wanted, to);
      to += 8 * params.out_stride * (kBits / 8);
    }
  }
}

template <Tile T, Fusion F>
__device__ __forceinline__ void finish_tile(const GemmParams& params, TilePlace place,
                                            const typename Mainloop<T>::Sums& sums) {
  if (params.out_type == OutType::bf16 || params.out_type == OutType::f16) {
    store_tile<T, F, 16>(params, place, sums);
  } else {
    store_tile<T, F, 32>(params, place, sums);
  }
}

}  // namespace octet::cuda
