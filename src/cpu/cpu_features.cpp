#include "cpu/cpu_features.h"

#include <fstream>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace octet::cpu {
namespace {

#if defined(__x86_64__)

// Every CPU with AVX2 has it, but a virtual machine may hide it. (Not a name that
// __builtin_cpu_supports of every compiler knows.)
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & (1u << 29)) != 0;
}

// AMX bits of leaf 7 (gcc 12's __builtin_cpu_supports does not know their names).
bool has_amx(unsigned edx_bit) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned kTile = 1u << 24;
  return (d & kTile) != 0 && (d & edx_bit) != 0;
}

// The tile registers are 8 KB of state that Linux saves only for processes that asked.
bool may_use_tiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

CpuFeatures detect() {
  __builtin_cpu_init();
  CpuFeatures features;
  features.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  features.avx512 = features.avx2 && __builtin_cpu_supports("avx512f") &&
                    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
  features.avx512_vnni = features.avx512 && __builtin_cpu_supports("avx512vnni");
  const bool int8_tiles = has_amx(1u << 25);
  const bool bf16_tiles = has_amx(1u << 22);
  if (features.avx512 && (int8_tiles || bf16_tiles) && may_use_tiles()) {
    features.amx_int8 = int8_tiles;
    features.amx_bf16 = bf16_tiles;
  }
  return features;
}

#elif defined(__aarch64__)

CpuFeatures detect() {
  constexpr unsigned long kDotProduct = 1ul << 20;  // HWCAP_ASIMDDP
  constexpr unsigned long kI8mm = 1ul << 13;        // HWCAP2_I8MM
  constexpr unsigned long kBf16 = 1ul << 14;        // HWCAP2_BF16
  CpuFeatures features;
  features.neon = true;
  features.neon_dotprod = (getauxval(AT_HWCAP) & kDotProduct) != 0;
  features.neon_i8mm = (getauxval(AT_HWCAP2) & kI8mm) != 0;
  features.neon_bf16 = (getauxval(AT_HWCAP2) & kBf16) != 0;
  return features;
}

#endif

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

std::vector<std::string> feature_names(const CpuFeatures& features) {
  const std::pair<bool, const char*> all[] = {
      {features.avx2, "avx2"},
      {features.avx512, "avx512"},
      {features.avx512_vnni, "avx512_vnni"},
      {features.amx_int8, "amx_int8"},
      {features.amx_bf16, "amx_bf16"},
      {features.neon, "neon"},
      {features.neon_dotprod, "neon_dotprod"},
      {features.neon_i8mm, "neon_i8mm"},
      {features.neon_bf16, "neon_bf16"},
  };
  std::vector<std::string> names;
  for (const auto& [present, name] : all) {
    if (present) names.emplace_back(name);
  }
  return names;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon != std::string::npos && line.rfind("model name", 0) == 0) {
      return line.substr(std::min(colon + 2, line.size()));
    }
  }
#if defined(__aarch64__)
  return "aarch64 processor";  // Linux names no model there
#else
  return "x86-64 processor";
#endif
}

}  // namespace octet::cpu
