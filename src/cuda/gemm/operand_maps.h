// How TMA finds the operands of a GEMM: an argument of the kernels of family sm90.
#pragma once

#include <cuda.h>

namespace octet::cuda {

struct OperandMaps {
  CUtensorMap a;  // I8 [m, k], boxes of the rows that one block fetches
  CUtensorMap w;  // I8 [k / 128, packed rows, 128], or plain rows in groups of 32; likewise
};

}  // namespace octet::cuda
