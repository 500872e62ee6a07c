// All int8 microkernels of this architecture, best first, scalar last.
#pragma once

#include <span>
#include <string>

#include "cpu/gemm/int8_microkernel.h"

namespace octet::cpu {

std::span<const Int8MicroKernel* const> micro_kernels();

// Why this CPU cannot run the kernel; empty if it can.
std::string refusal(const Int8MicroKernel& kernel);

// The first that this CPU can run; or, when `forced` is not empty, the one of that name. Throws
// Error with the list of names when there is no such kernel or the CPU cannot run it.
const Int8MicroKernel& select_micro_kernel(const std::string& forced);

}  // namespace octet::cpu
