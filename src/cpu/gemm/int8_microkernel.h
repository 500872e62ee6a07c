// A microkernel multiplies one panel of activations by one panel of weights with one instruction
// set: acc[mr][nr] (+)= sum over k of a[mr][k] * b[nr][k]. Everything around it (blocking, threads,
// packing, the epilogue) is in the driver, written once.
//
// Packed layouts, for k padded with zeros to a multiple of k_step:
//   a  [k block] [m / mr] [block / a_group] [mr] [a_group]     activations, packed in each call
//   b  [n / nr] [k / b_group] [nr] [b_group]                   weights, packed once
// Padding rows and columns are zero. The k blocks of b are not in its layout: a panel of b is
// contiguous over all of k, and its part from k0 on is k0 * nr bytes into it.
//
// This header is included by files compiled for wide instruction sets: plain data only.
#pragma once

#include <cstdint>

#include "cpu/rows/row_ops.h"

namespace octet::cpu {

// Memory that will be needed soon. A fast kernel prefetches it while it multiplies, a few cache
// lines per k step; a burst of prefetches between two calls would fill the load buffers and stall
// the tile loads behind it. A hint: kernels that are slower than memory ignore it.
struct Ahead {
  struct Stream {
    const int8_t* at;
    int64_t lines_per_step;  // of 64 bytes
  };
  Stream a;  // the next k block of the activations, into L2
  Stream b;  // the next panel of weights, into L2
  // The rows of the output tile that the epilogue will write, into L1.
  const char* out;
  int64_t out_stride_bytes;
  int64_t out_lines;
  int64_t out_rows_per_step;
};

struct Int8MicroKernel {
  const char* name;  // "amx_int8_32x32": its identity in logs, tests and OCTET_FORCE_KERNEL
  Simd simd;         // the row operations that go with it
  int mr;
  int nr;  // even, so that a gate and its up column meet in one tile
  int k_step;
  int a_group;
  int b_group;
  // Kernels whose instruction takes unsigned activations get a + a_offset; the driver starts their
  // accumulators at -a_offset * (sum of the weight column), which makes the result exact again.
  int a_offset = 0;
  int k_block;  // k per pass: a panel of b must stay in L1 while the panels of a stream past it

  // acc is [mr][nr], 64-byte aligned; accumulate says whether its content counts. k is a multiple
  // of k_step.
  void (*run)(const int8_t* a, const int8_t* b, int64_t k, int32_t* acc, bool accumulate,
              const Ahead& ahead);

  // Per-thread state around a series of run() calls (AMX tile configuration), or null.
  void (*begin)() = nullptr;
  void (*end)() = nullptr;

  // Repeats the multiply instruction on registers alone and returns the integer operations done
  // (a multiply and an add count as two): the instruction's ceiling if memory were free.
  int64_t (*spin)(int64_t iterations);
};

extern const Int8MicroKernel kMicroScalar;
extern const Int8MicroKernel kMicroAvx2;
extern const Int8MicroKernel kMicroVnni;
extern const Int8MicroKernel kMicroAmx;
extern const Int8MicroKernel kMicroDotprod;
extern const Int8MicroKernel kMicroI8mm;

}  // namespace octet::cpu
