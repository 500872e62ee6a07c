// The ops between a model's linears: every check of model_ops_run.h on ref, and on the CPU with
// each instruction set and with one thread and several.
#include <memory>
#include <string>
#include <tuple>

#include "ops/model_ops_run.h"

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

}  // namespace
}  // namespace octet::test::model
