// The unquantized matmul of the CPU backend: out [m, n] = a [m, k] times b [n, k] transposed, plus
// bias [n].
//
// a and b are both F32 or both BF16, out is F32, BF16 or F16; products are summed in f32, the bias
// (of out's type) is added, and the whole is rounded once. The order of the sum differs between
// kernels, so their results agree only to within the rounding of f32 sums. The two bf16 instruction
// sets (AMX, bfmmla) read subnormal inputs and write subnormal sums as zero; the f32 kernels do
// not.
//
// b is read as it lies in memory, not packed in advance: this is what INT8 is compared with, and
// what runs layers whose weights stay in floating point.
#pragma once

#include <span>
#include <string_view>

#include "base/thread_pool.h"
#include "cpu/cpu_features.h"
#include "cpu/matmul/float_microkernel.h"
#include "tensor/tensor.h"

namespace octet::cpu {

struct MatmulKernel {
  const char* name;
  bool (*supported)(const CpuFeatures& features);
  bool serves_f32;
  bool serves_bf16;
  const FloatMicroKernel* micro;

  bool serves(DType inputs) const {
    return (inputs == DType::f32 && serves_f32) || (inputs == DType::bf16 && serves_bf16);
  }
};

// Every kernel of this architecture, best first. The last one runs everywhere.
std::span<const MatmulKernel> matmul_kernels();

// The first kernel that this CPU supports and that takes such inputs (F32 or BF16).
const MatmulKernel& choose_matmul_kernel(DType inputs, const CpuFeatures& features);

// The kernel of that name; an unknown one, or one that this CPU cannot run, is an error.
const MatmulKernel& matmul_kernel_named(std::string_view name, const CpuFeatures& features);

// The kernel must be supported and take the inputs' type, and the shapes must fit (see
// Backend::matmul). `out` overlaps neither input.
void matmul(ThreadPool& pool, const MatmulKernel& kernel, const ConstTensorView& a,
            const ConstTensorView& b, const TensorView& out, const ConstTensorView& bias = {});

}  // namespace octet::cpu
