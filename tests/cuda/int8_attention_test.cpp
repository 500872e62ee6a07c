// Attention on INT8 codes of q and k on the GPU: every kernel forced by name.
#include "cuda/forced_attention.h"
#include "ops/attention_run.h"

namespace octet::test {
namespace {

using cuda::FlashKernel;
using model::AttentionCase;

class Int8AttentionWay : public ForcedAttention {
 protected:
  void expect_right(const AttentionCase& c, float deviation = 1) {
    ASSERT_EQ(backend_->why_no_int8_attention(c.head_dim, c.type), "");
    model::expect_int8_attention_right(*backend_, c, deviation, truth_);
  }

  const model::Truth truth_ = model::Truth::of_cpu();
};

std::vector<std::string> int8_ways() {
  std::vector<std::string> ways;
  for (const FlashKernel& kernel : cuda::flash_kernels()) {
    if (kernel.int8 && !kernel.int8_values) ways.push_back(kernel.name);
  }
  return ways;
}

INSTANTIATE_TEST_SUITE_P(Cuda, Int8AttentionWay, testing::ValuesIn(int8_ways()), print_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Int8AttentionWay);

TEST_P(Int8AttentionWay, RaggedLengths) {
  for (const int64_t rows : {int64_t{1}, rows_ - 1, rows_ + 1, 2 * rows_ + 17}) {
    expect_right({DType::bf16, rows, keys_ + 3, 1, 1, head_dim_});
  }
  for (const int64_t keys : {int64_t{1}, int64_t{2}, keys_ - 1, keys_, keys_ + 1, 2 * keys_,
                             3 * keys_ + 5, 23 * keys_ + 7}) {
    expect_right({DType::bf16, 33, keys, 2, 2, head_dim_});
  }
}

TEST_P(Int8AttentionWay, SharedKeysCausalAndLargeScores) {
  expect_right({DType::bf16, 50, 70, 6, 2, head_dim_});
  for (const int64_t length : {int64_t{1}, keys_ + 1, rows_ + 1, 2 * rows_ + 19}) {
    expect_right({DType::bf16, length, length, 2, 1, head_dim_, true});
  }
  expect_right({DType::bf16, 40, 5 * keys_ + 1, 1, 1, head_dim_}, 8);
}

}  // namespace
}  // namespace octet::test
