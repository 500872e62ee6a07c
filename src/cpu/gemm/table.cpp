#include "cpu/gemm/table.h"

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "cpu/cpu_features.h"

namespace octet::cpu {
namespace {

struct Row {
  const Int8MicroKernel* kernel;
  bool CpuFeatures::*needs;  // null: runs everywhere
  const char* feature;
};

const Row kRows[] = {
#if defined(__x86_64__)
    {&kMicroAmx, &CpuFeatures::amx_int8, "amx_int8"},
    {&kMicroVnni, &CpuFeatures::avx512_vnni, "avx512_vnni"},
    {&kMicroAvx2, &CpuFeatures::avx2, "avx2"},
#elif defined(__aarch64__)
    {&kMicroI8mm, &CpuFeatures::neon_i8mm, "neon_i8mm"},
    {&kMicroDotprod, &CpuFeatures::neon_dotprod, "neon_dotprod"},
#endif
    {&kMicroScalar, nullptr, ""},
};

std::string names() {
  std::string text;
  for (const Row& row : kRows) {
    if (!text.empty()) text += ", ";
    text += row.kernel->name;
  }
  return text;
}

}  // namespace

std::span<const Int8MicroKernel* const> micro_kernels() {
  static const auto pointers = [] {
    std::array<const Int8MicroKernel*, std::size(kRows)> list{};
    for (size_t i = 0; i < list.size(); ++i) {
      list[i] = kRows[i].kernel;
      check(list[i]->nr % 2 == 0,
            "gemm: kernel {} has tiles of {} columns, expected an even number", list[i]->name,
            list[i]->nr);
    }
    return list;
  }();
  return pointers;
}

std::string refusal(const Int8MicroKernel& kernel) {
  for (const Row& row : kRows) {
    if (row.kernel != &kernel || row.needs == nullptr) continue;
    if (!(cpu_features().*row.needs)) return fmt::format("this CPU has no {}", row.feature);
  }
  return {};
}

const Int8MicroKernel& select_micro_kernel(const std::string& forced) {
  for (const Int8MicroKernel* kernel : micro_kernels()) {
    if (forced.empty()) {
      const std::string reason = refusal(*kernel);
      if (reason.empty()) return *kernel;
      if (env::trace("gemm")) log::trace("gemm kernel {} refused: {}", kernel->name, reason);
    } else if (forced == kernel->name) {
      const std::string reason = refusal(*kernel);
      check(reason.empty(), "gemm: the forced kernel {} cannot run: {}", forced, reason);
      return *kernel;
    }
  }
  fail("gemm: there is no kernel named {}; this build has {}", forced, names());
}

}  // namespace octet::cpu
