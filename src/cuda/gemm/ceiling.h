// What the tensor cores reach when nothing else limits them.
#pragma once

#include <cstdint>

struct CUstream_st;

namespace octet::cuda {

enum class CeilingOf : uint8_t {
  int8,  // with sums in int32
  bf16,  // with sums in f32
};

// Multiplies operands at hand on all multiprocessors, `repeats` times: in registers with mma.sync
// or, for `hopper` (sm_90a), in shared memory with wgmma. `sink` has at least 4 bytes. Returns the
// number of operations.
double launch_ceiling(CeilingOf what, bool hopper, int multiprocessors, int repeats, int* sink,
                      CUstream_st* stream);

}  // namespace octet::cuda
