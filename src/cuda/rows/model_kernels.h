// Launchers of the other ops on rows. No CUDA header here; the rules are those of row_kernels.h.
// Rows and vectors that start at a multiple of 16 bytes are fast; all others work, too.
#pragma once

#include <cstdint>
#include <span>

#include "backend/ops.h"
#include "tensor/tensor.h"

struct CUstream_st;

namespace octet::cuda {

// All F32 or all BF16 [rows, channels].
void launch_swiglu(const ConstTensorView& gate, const ConstTensorView& up, const TensorView& out,
                   int multiprocessors, CUstream_st* stream);
void launch_activate(const ConstTensorView& x, Activation how, const TensorView& out,
                     int multiprocessors, CUstream_st* stream);
void launch_add(const TensorView& h, const ConstTensorView& x, int multiprocessors,
                CUstream_st* stream);

void launch_euler_step(const EulerStep& step, int multiprocessors, CUstream_st* stream);

// out[i] = table[rows[i]]; `rows` is in device memory.
void launch_embed(const ConstTensorView& table, const int32_t* rows, const TensorView& out,
                  int multiprocessors, CUstream_st* stream);

// `times` is in host memory, and travels with the launch.
void launch_sinusoids(std::span<const float> times, const ConstTensorView& frequencies,
                      const TensorView& out, CUstream_st* stream);

}  // namespace octet::cuda
