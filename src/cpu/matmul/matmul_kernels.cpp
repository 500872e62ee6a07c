// The table of kernels, and the choice among them.
#include <string>

#include "base/error.h"
#include "cpu/matmul/matmul.h"

namespace octet::cpu {
namespace {

constexpr bool always(const CpuFeatures&) { return true; }

constexpr MatmulKernel kKernels[] = {
#if defined(__x86_64__)
    {"amx_bf16_32x32", [](const CpuFeatures& cpu) { return cpu.amx_bf16 && cpu.avx512; }, false,
     true, &kAmxBf16MicroKernel},
    {"avx512_f32_14x32", [](const CpuFeatures& cpu) { return cpu.avx512; }, true, true,
     &kAvx512F32MicroKernel},
    {"avx2_f32_6x16", [](const CpuFeatures& cpu) { return cpu.avx2; }, true, true,
     &kAvx2F32MicroKernel},
#elif defined(__aarch64__)
    {"neon_bf16_8x12", [](const CpuFeatures& cpu) { return cpu.neon_bf16; }, false, true,
     &kNeonBf16MicroKernel},
    {"neon_f32_8x12", always, true, true, &kNeonF32MicroKernel},
#endif
    {"scalar", always, true, true, &kScalarMicroKernel},
};

}  // namespace

std::span<const MatmulKernel> matmul_kernels() { return kKernels; }

const MatmulKernel& choose_matmul_kernel(DType inputs, const CpuFeatures& features) {
  for (const MatmulKernel& kernel : kKernels) {
    if (kernel.serves(inputs) && kernel.supported(features)) return kernel;
  }
  fail("matmul: no CPU kernel takes {} inputs, expected F32 or BF16", name_of(inputs));
}

const MatmulKernel& matmul_kernel_named(std::string_view name, const CpuFeatures& features) {
  std::string names;
  for (const MatmulKernel& kernel : kKernels) {
    if (kernel.name == name) {
      check(kernel.supported(features), "matmul: this CPU cannot run {}", name);
      return kernel;
    }
    names += fmt::format("{}{}", names.empty() ? "" : ", ", kernel.name);
  }
  fail("matmul: there is no kernel {}, expected one of {}", name, names);
}

}  // namespace octet::cpu
