// The instruction sets of this CPU that kernels here use, detected once.
#pragma once

#include <string>
#include <vector>

namespace octet::cpu {

struct CpuFeatures {
  // x86-64
  bool avx2 = false;         // with FMA and F16C
  bool avx512 = false;       // F, BW, DQ and VL together
  bool avx512_vnni = false;  // vpdpbusd
  bool amx_int8 = false;     // and Linux lets this process use the tile registers
  bool amx_bf16 = false;
  // aarch64
  bool neon = false;
  bool neon_dotprod = false;  // sdot
  bool neon_i8mm = false;     // smmla
  bool neon_bf16 = false;     // bfmmla
};

// Detects on the first call. For AMX this asks Linux for permission to use the tile registers,
// which holds for the whole process.
const CpuFeatures& cpu_features();

// The names of those that are present, in the order above: {"avx2", "avx512", ...}.
std::vector<std::string> feature_names(const CpuFeatures& features);

std::string cpu_model();  // "Intel(R) Xeon(R) Processor", or the architecture when unknown

}  // namespace octet::cpu
