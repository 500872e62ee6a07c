// Portable C++, for CPUs with none of the instruction sets of the other files.
#include "cpu/gemm/int8_microkernel.h"

namespace octet::cpu {
namespace {

constexpr int kMr = 4;
constexpr int kNr = 16;
constexpr int kAGroup = 64;
constexpr int kBGroup = 4;

void run(const int8_t* a, const int8_t* b, int64_t k, int32_t* acc, bool accumulate, const Ahead&) {
  int32_t c[kMr][kNr];
  for (int i = 0; i < kMr; ++i) {
    for (int j = 0; j < kNr; ++j) c[i][j] = accumulate ? acc[i * kNr + j] : 0;
  }
  for (int64_t k0 = 0; k0 < k; k0 += kBGroup) {
    const int8_t* a_at = a + (k0 / kAGroup) * kMr * kAGroup + k0 % kAGroup;
    const int8_t* b_at = b + k0 * kNr;
    for (int i = 0; i < kMr; ++i) {
      for (int j = 0; j < kNr; ++j) {
        for (int p = 0; p < kBGroup; ++p) {
          c[i][j] += a_at[i * kAGroup + p] * b_at[j * kBGroup + p];
        }
      }
    }
  }
  for (int i = 0; i < kMr; ++i) {
    for (int j = 0; j < kNr; ++j) acc[i * kNr + j] = c[i][j];
  }
}

// The compiler chose the instructions, so this runs the kernel itself, on data in L1.
int64_t spin(int64_t iterations) {
  int8_t a[kMr * kAGroup];
  int8_t b[kNr * kAGroup];
  int32_t acc[kMr * kNr] = {};
  for (int i = 0; i < kMr * kAGroup; ++i) a[i] = static_cast<int8_t>(i * 37 % 127);
  for (int i = 0; i < kNr * kAGroup; ++i) b[i] = static_cast<int8_t>(i * 53 % 127);
  for (int64_t i = 0; i < iterations; ++i) {
    run(a, b, kAGroup, acc, false, {});
    asm volatile("" : : "r"(acc) : "memory");
  }
  return iterations * kMr * kNr * kAGroup * 2;
}

}  // namespace

const Int8MicroKernel kMicroScalar = {
    .name = "scalar_4x16",
    .simd = Simd::scalar,
    .mr = kMr,
    .nr = kNr,
    .k_step = kAGroup,
    .a_group = kAGroup,
    .b_group = kBGroup,
    .k_block = 1024,
    .run = run,
    .spin = spin,
};

}  // namespace octet::cpu
