// What the tensor cores reach on INT8 when nothing else limits them.
#pragma once

struct CUstream_st;

namespace octet::cuda {

// Multiplies registers by registers with mma.sync, all multiprocessors full, `repeats` times;
// `sink` holds at least 4 bytes. Returns the number of operations.
double launch_int8_ceiling(int multiprocessors, int repeats, int* sink, CUstream_st* stream);

// The same on Hopper (sm_90a): shared memory by shared memory with wgmma.
double launch_hopper_ceiling(int multiprocessors, int repeats, int* sink, CUstream_st* stream);

}  // namespace octet::cuda
