// Formats of weights and activations for comparisons only: FP8 and NF4.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

struct CUstream_st;

namespace octet::cuda {

inline constexpr float kFp8Most = 448;  // the largest number of E4M3
inline constexpr int64_t kMostFp8Columns = 16384;

// Rows BF16 [m, k], k a multiple of 8 up to kMostFp8Columns, to F8_E4M3 codes: x * (448 / amax) of
// their row, rounded to nearest even. scales[row] = amax / 448; a row of zeros gets 0.
void launch_quantize_fp8_rows(const ConstTensorView& x, uint8_t* codes, float* scales,
                              CUstream_st* stream);
// The same with one scale for all rows. `amax` is scratch memory for a float.
void launch_quantize_fp8_tensor(const ConstTensorView& x, uint8_t* codes, float* scale, float* amax,
                                CUstream_st* stream);

// bitsandbytes' code book of NF4: quantiles of a normal distribution, 0 among them.
inline constexpr float kNf4Book[16] = {
    -1.0f,
    -0.6961928009986877f,
    -0.5250730514526367f,
    -0.39491748809814453f,
    -0.28444138169288635f,
    -0.18477343022823334f,
    -0.09105003625154495f,
    0.0f,
    0.07958029955625534f,
    0.16093020141124725f,
    0.24611230194568634f,
    0.33791524171829224f,
    0.44070982933044434f,
    0.5626170039176941f,
    0.7229568362236023f,
    1.0f,
};
inline constexpr int64_t kNf4Block = 64;  // consecutive elements with one factor

// `count` numbers, a multiple of kNf4Block, to two codes in a byte with the even element in the
// high nibble, and F32 factors: the largest magnitude of each block.
void launch_quantize_nf4(const bf16_t* x, uint8_t* codes, float* absmax, int64_t count,
                         CUstream_st* stream);
// And back: book value times factor, rounded to bf16.
void launch_dequantize_nf4(const uint8_t* codes, const float* absmax, bf16_t* out, int64_t count,
                           CUstream_st* stream);

}  // namespace octet::cuda
