// The layout of a weight in GPU memory, for all kernel families.
//
// Blocks of 128 bytes of k: [ceil(k / 128)][packed_rows(n)][128], zeros past the end of k (one
// block of zeros when there is no k at all). The rows of a tile are then one contiguous chunk per
// stage, at constant distances for each thread, whatever n and k. After the last row there are
// kReadPast bytes that may be read: the last tile of n need not check which rows exist, since rows
// past n only affect columns that are never stored.
//
// Rows are permuted, 32 at a time. The tensor cores leave columns 2t and 2t + 1 of eight in thread
// t; stored as they are, a thread would write 4 bytes at a time. Row 8 j + r of 32 in memory is
// hence row 8 (r / 2) + 2 j + r % 2 of w: after four multiplications by eight columns thread t
// has columns 8 t to 8 t + 7, one 16-byte store in bf16, straight from the registers, without a
// detour through shared memory, which the next tile is filling.
#pragma once

#include <cstdint>

#include "tensor/quantized.h"
#include "tensor/tensor.h"

struct CUstream_st;

namespace octet::cuda {

inline constexpr const char* kWeightLayout = "cuda_k128_permuted32";
// Rows as they are, in somebody else's memory; the kernels permute them while they fetch.
inline constexpr const char* kPlainLayout = "cuda_rows";
inline constexpr int64_t kBlockBytes = 128;
inline constexpr int64_t kReadPast = 256 * kBlockBytes;  // the widest tile

inline constexpr int64_t kPermutedRows = 32;

// n, rounded up to a multiple of kPermutedRows.
int64_t packed_rows(int64_t n);
int64_t packed_bytes(int64_t n, int64_t k);

// Whether kernels can read a weight where it lies: they permute whole groups of rows, read chunks
// of 16 bytes, and count bytes in 32 bits.
bool can_stay_plain(const PlainWeight& weight);

// to[channel] = float(from[row]) for n rows, and zeros up to the next multiple of eight. `from` has
// F32, BF16 or F16 [n], or [1]: the same for all. `gated`: see QWeight::channel_of().
void launch_spread_columns(const ConstTensorView& from, int64_t n, bool gated, float* to,
                           CUstream_st* stream);

// Where rows of a weight go: see QWeight and Backend::pack_rows().
struct PackTarget {
  int8_t* values;
  float* col_scale;
  int64_t n, k;
  int64_t first;  // of the rows
  bool gated;     // rows of the gate and of the up projection alternate
};

// Copies codes I8 [rows, k] and scales F32 [rows], all on the device, to their places; the scales
// are multiplied by `factors` [rows], unless that is null.
void launch_pack_rows(const ConstTensorView& rows, const float* scales, const float* factors,
                      const PackTarget& to, CUstream_st* stream);
// Only the codes.
void launch_pack_codes(const ConstTensorView& rows, const PackTarget& to, CUstream_st* stream);

}  // namespace octet::cuda
