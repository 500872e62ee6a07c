// Launchers of the row kernels: quantization, its inverse, and what the tuner and the comparison
// with library GEMMs need around a GEMM. No CUDA header here, so that plain C++ may include it.
//
// All of them only enqueue work on `stream`; the caller asks cudaGetLastError() for launch errors.
// Memory is the device's. Shapes and types were checked by Backend; empty tensors launch nothing.
// The bits are those of ref/quantize.cpp and of the numeric contract in backend/gemm.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/quantized.h"
#include "tensor/tensor.h"

struct CUstream_st;

namespace octet::cuda {

// x: F32, BF16 or F16 [rows, k] -> out: I8 [rows, k] with F32 scales [rows].
//
// Fast if x (and smooth) start at a multiple of 16 bytes and have rows a multiple of 16 bytes
// apart, out likewise with 8 bytes (16 with a rotation), k is a multiple of 8 (16 with a rotation)
// and at most 24,576. Otherwise a plain kernel gives the same bits.
void launch_quantize_rows(const ConstTensorView& x, const ActivationTransform& transform,
                          const QTensor& out, int multiprocessors, CUstream_st* stream);

// The same with the best of several scales: see Backend::quantize_rows_searched(). `ratios` is in
// host memory, and travels with the launch. Rows of any alignment; those with k up to 24,576 are
// read once.
void launch_quantize_rows_searched(const ConstTensorView& x, const ActivationTransform& transform,
                                   std::span<const float> ratios, const QTensor& out,
                                   int multiprocessors, CUstream_st* stream);

// q: I8 [rows, k] with F32 scales [rows] -> out: F32, BF16 or F16 [rows, k].
void launch_dequantize_rows(const QTensor& q, const TensorView& out, int multiprocessors,
                            CUstream_st* stream);

// x: F8_E4M3, F16, BF16 or F32 [rows, k], times row_scale F32 [rows] unless that is null -> out:
// F32 or BF16 [rows, k]. Fast if rows of both start at multiples of 16 bytes.
void launch_convert(const ConstTensorView& x, const TensorView& out, const float* row_scale,
                    int multiprocessors, CUstream_st* stream);

// The epilogue of the numeric contract as a pass of its own, for an INT8 GEMM that leaves its
// accumulators in memory: out[i, j] = (float(acc[i, j]) * row_scale[i]) * col_scale[j], then +
// bias[j] unless bias is null. acc: I32 [m, n] dense; row_scale: F32 [m]; col_scale, bias: F32 [n];
// out: F32, BF16, F16 [m, n].
void launch_dequantize_accumulators(const int32_t* acc, const float* row_scale,
                                    const float* col_scale, const float* bias,
                                    const TensorView& out, int multiprocessors,
                                    CUstream_st* stream);

// Values in [-127, 127], about normal with a deviation of 30; each depends only on its index and
// the seed.
void launch_fill_random_int8(int8_t* values, size_t count, uint64_t seed, CUstream_st* stream);

// Copies rows [rows, columns] to rows `to_stride` bytes apart, and clears the rest of these. `to`
// and `to_stride` are multiples of 16, `to_stride` >= columns; the source may be anywhere.
void launch_copy_padded(const int8_t* from, int64_t from_stride, int8_t* to, int64_t to_stride,
                        int64_t rows, int64_t columns, CUstream_st* stream);

}  // namespace octet::cuda
