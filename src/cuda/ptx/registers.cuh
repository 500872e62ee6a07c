// The distribution of registers.
#pragma once

namespace octet::cuda::ptx {

// Registers per thread of a whole warpgroup from now on (Hopper).
template <int kRegisters>
__device__ __forceinline__ void give_registers_away() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// threadIdx.x, with its origin hidden: values derived from it after a main loop are then not
// computed before the loop and kept in registers that it needs.
__device__ __forceinline__ unsigned thread_read_anew() {
  unsigned thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

// Likewise blockIdx.
__device__ __forceinline__ uint3 block_read_anew() {
  uint3 block;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block.x));
  asm volatile("mov.u32 %0, %%ctaid.y;" : "=r"(block.y));
  asm volatile("mov.u32 %0, %%ctaid.z;" : "=r"(block.z));
  return block;
}

// The same for any number: values derived from it are computed again.
__device__ __forceinline__ int read_anew(int value) {
  asm volatile("" : "+r"(value));
  return value;
}

}  // namespace octet::cuda::ptx
