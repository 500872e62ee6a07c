// Launchers of the ops on images. No CUDA header here; the rules are those of rows/row_kernels.h.
// An image is a matrix with one row per pixel, F32 or BF16. Rows that start at a multiple of 16
// bytes are fast; all others work, too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/ops.h"
#include "tensor/tensor.h"

struct CUstream_st;

namespace octet::cuda {

// Memory that the next needs, at a multiple of 16 bytes.
size_t group_norm_scratch_bytes(const ConstTensorView& x, const GroupNorm& how,
                                int multiprocessors);
void launch_group_norm(const ConstTensorView& x, const GroupNorm& how, const TensorView& out,
                       std::byte* scratch, int multiprocessors, CUstream_st* stream);

// GroupSums::memory, whatever it holds at first.
size_t group_sums_bytes(const GroupSums& sums, int multiprocessors);
// Backend::add_group_sums().
void launch_group_sums(const GroupSums& sums, const ConstTensorView& x, int multiprocessors,
                       CUstream_st* stream);

// Row i of out [count, 9 * channels]: the three by three pixels around pixel first + i of the image
// that `args` convolves, the top left one first, zeros where there is none.
void launch_unfold(const ConvArgs& args, int64_t first, const TensorView& out, CUstream_st* stream);

}  // namespace octet::cuda
