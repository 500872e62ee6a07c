// AMX-INT8: tdpbssd multiplies a 16 x 64 tile of activations by a 64 x 16 tile of weights (stored
// as 16 rows of 16 columns x 4 bytes) into 16 x 16 int32, in 16 cycles. Four accumulator tiles,
// two tiles of each operand: 4 loads serve 4 multiplications, the best ratio that 8 tiles allow.
#include <immintrin.h>

#include "cpu/gemm/int8_microkernel.h"
#include "cpu/simd/amx_tiles.h"

namespace octet::cpu {
namespace {

constexpr int kMr = 32;
constexpr int kNr = 32;
constexpr int kStep = 64;
constexpr int kBGroup = 4;
constexpr int kTileBytes = 1024;

// Prefetches the next part of everything in `next`, which moves on.
[[gnu::always_inline]] inline void prefetch(Ahead& next) {
  for (int64_t i = 0; i < next.a.lines_per_step; ++i, next.a.at += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(next.a.at), _MM_HINT_T1);
  }
  for (int64_t i = 0; i < next.b.lines_per_step; ++i, next.b.at += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(next.b.at), _MM_HINT_T1);
  }
  for (int64_t i = 0; i < next.out_rows_per_step; ++i, next.out += next.out_stride_bytes) {
    for (int64_t j = 0; j < next.out_lines; ++j) __builtin_prefetch(next.out + j * 64, 1, 3);
  }
}

// Tiles: 0-3 accumulators, 4-5 activations, 6-7 weights.
void run(const int8_t* a, const int8_t* b, int64_t k, int32_t* acc, bool accumulate,
         const Ahead& ahead) {
  constexpr int kAccStride = kNr * sizeof(int32_t);
  int32_t* lower = acc + 16 * kNr;
  // The "stream" loads keep activations and accumulators, which are used once per call, from
  // driving the weight panel out of L1: 4.1 instead of 2.9 TOPS on one core of an Emerald Rapids
  // Xeon whose ceiling is 4.6 (k = 1152, a in L2). Prefetching a into L1 by software made it
  // slower.
  if (accumulate) {
    _tile_stream_loadd(0, acc, kAccStride);
    _tile_stream_loadd(1, acc + 16, kAccStride);
    _tile_stream_loadd(2, lower, kAccStride);
    _tile_stream_loadd(3, lower + 16, kAccStride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  Ahead next = ahead;
  for (int64_t k0 = 0; k0 < k; k0 += kStep, a += kMr * kStep, b += kNr * kStep) {
    prefetch(next);
    _tile_loadd(6, b, kNr * kBGroup);
    _tile_stream_loadd(4, a, kStep);
    _tile_dpbssd(0, 4, 6);
    _tile_loadd(7, b + 64, kNr * kBGroup);
    _tile_dpbssd(1, 4, 7);
    _tile_stream_loadd(5, a + kTileBytes, kStep);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  _tile_stored(0, acc, kAccStride);
  _tile_stored(1, acc + 16, kAccStride);
  _tile_stored(2, lower, kAccStride);
  _tile_stored(3, lower + 16, kAccStride);
}

int64_t spin(int64_t iterations) {
  load_tile_config();
  alignas(64) int8_t bytes[kTileBytes];
  for (int i = 0; i < kTileBytes; ++i) bytes[i] = static_cast<int8_t>(i * 37);
  asm volatile("" : : "r"(bytes) : "memory");  // gcc's _tile_loadd does not say that it reads
  _tile_loadd(4, bytes, 64);
  _tile_loadd(5, bytes, 64);
  _tile_loadd(6, bytes, 64);
  _tile_loadd(7, bytes, 64);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t i = 0; i < iterations; ++i) {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  release_tiles();
  return iterations * 4 * (16 * 16 * 64) * 2;
}

}  // namespace

const Int8MicroKernel kMicroAmx = {
    .name = "amx_int8_32x32",
    .simd = Simd::avx512,
    .mr = kMr,
    .nr = kNr,
    .k_step = kStep,
    .a_group = kStep,
    .b_group = kBGroup,
    .k_block = 1152,
    .run = run,
    .begin = load_tile_config,
    .end = release_tiles,
    .spin = spin,
};

}  // namespace octet::cpu
