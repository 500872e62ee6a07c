// The ops between a model's linears: every check of model_ops_run.h on ref, and on the CPU with
// each instruction set and with one thread and several.
#include <algorithm>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "backend/model_ops_run.h"
#include "cpu/matmul/matmul.h"

namespace octet::test::model {
namespace {

std::string check_name(const testing::TestParamInfo<size_t>& info) {
  return kModelOpChecks[info.param].name;
}

class RefModelOps : public testing::TestWithParam<size_t> {};

// That ref agrees with itself in another type says that it rounds once and reads strides.
TEST_P(RefModelOps, EqualsItselfInF32) {
  const auto backend = make_ref_backend();
  kModelOpChecks[GetParam()].run(*backend);
}

INSTANTIATE_TEST_SUITE_P(All, RefModelOps, testing::Range<size_t>(0, std::size(kModelOpChecks)),
                         check_name);

struct CpuCase {
  size_t check;
  std::string kernel;
  std::string matmul;
  int threads;

  std::string name() const {
    const std::string variant = threads == 1 ? "one_thread" : kernel + matmul;
    return std::string(kModelOpChecks[check].name) + "_" + variant;
  }
  friend void PrintTo(const CpuCase& c, std::ostream* out) { *out << c.name(); }
};

bool multiplies(const std::string& check) {
  return check.find("Attention") != check.npos || check.find("Conv2d") != check.npos ||
         check == "MatmulBias";
}

// The instruction set of the rows is that of the int8 kernel: one kernel for each that runs here.
std::vector<std::string> kernels_of_distinct_rows() {
  std::vector<cpu::Simd> seen;
  std::vector<std::string> names;
  for (const cpu::Int8MicroKernel* kernel : cpu::micro_kernels()) {
    if (!cpu::refusal(*kernel).empty() ||
        std::find(seen.begin(), seen.end(), kernel->simd) != seen.end()) {
      continue;
    }
    seen.push_back(kernel->simd);
    names.emplace_back(kernel->name);
  }
  return names;
}

std::vector<CpuCase> cpu_cases() {
  std::vector<CpuCase> cases;
  for (size_t check = 0; check < std::size(kModelOpChecks); ++check) {
    for (const std::string& kernel : kernels_of_distinct_rows()) {
      cases.push_back({check, kernel, "", 3});
    }
    cases.push_back({check, "", "", 1});
    if (!multiplies(kModelOpChecks[check].name)) continue;
    for (const cpu::MatmulKernel& kernel : cpu::matmul_kernels()) {
      cases.push_back({check, "", kernel.name, 2});
    }
  }
  return cases;
}

class CpuModelOps : public testing::TestWithParam<CpuCase> {};

TEST_P(CpuModelOps, EqualRef) {
  const CpuCase& c = GetParam();
  for (const cpu::MatmulKernel& kernel : cpu::matmul_kernels()) {
    if (kernel.name == c.matmul && !kernel.supported(cpu::cpu_features())) {
      GTEST_SKIP() << "because this CPU cannot run " << kernel.name;
    }
  }
  const auto backend =
      make_cpu_backend({.threads = c.threads, .force_kernel = c.kernel, .force_matmul = c.matmul});
  kModelOpChecks[c.check].run(*backend);
}

INSTANTIATE_TEST_SUITE_P(All, CpuModelOps, testing::ValuesIn(cpu_cases()),
                         [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace octet::test::model
