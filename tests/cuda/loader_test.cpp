// The loader on the GPU: what the host reads, bit by bit.
#include "cuda_support.h"
#include "weights/loading_cases.h"

namespace octet::test {
namespace {

class LoaderOnGpu : public OnGpu, public testing::WithParamInterface<size_t> {};

TEST_P(LoaderOnGpu, GivesTheHostsBits) { kLoaderChecks[GetParam()].run(*make_gpu()); }

INSTANTIATE_TEST_SUITE_P(All, LoaderOnGpu, testing::Range<size_t>(0, std::size(kLoaderChecks)),
                         [](const auto& test) { return kLoaderChecks[test.param].name; });

}  // namespace
}  // namespace octet::test
