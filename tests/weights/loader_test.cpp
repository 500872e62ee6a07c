// The loader on the host's backends; tests/cuda runs the same checks.
#include "weights/loading_cases.h"

namespace octet::test {
namespace {

class LoaderOnHost : public testing::TestWithParam<size_t> {};

TEST_P(LoaderOnHost, Ref) { kLoaderChecks[GetParam()].run(*make_ref_backend()); }

TEST_P(LoaderOnHost, EveryCpuKernel) {
  for (const std::string& kernel : all_kernel_names()) {
    if (!why_not(kernel).empty()) continue;
    SCOPED_TRACE(kernel);
    kLoaderChecks[GetParam()].run(*make_cpu_backend({.threads = 2, .force_kernel = kernel}));
  }
}

INSTANTIATE_TEST_SUITE_P(All, LoaderOnHost, testing::Range<size_t>(0, std::size(kLoaderChecks)),
                         [](const auto& test) { return kLoaderChecks[test.param].name; });

}  // namespace
}  // namespace octet::test
