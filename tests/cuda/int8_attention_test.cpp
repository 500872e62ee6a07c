// Attention on INT8 codes of q and k on the GPU: every kernel forced by name.
#include "backend/attention_run.h"
#include "cuda/forced_attention.h"

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

// A problem whose values change while q and k stay.
struct WithValues {
  AttentionCase c;
  std::mt19937 random{65};
  model::AttentionOperands operands{c, random};
  model::AttentionCodes q{operands.q, c.heads}, k{operands.k, c.kv_heads};

  explicit WithValues(const AttentionCase& of) : c(of) {
    operands.v = model::random_matrix(c.type, c.keys, c.kv_heads * c.head_dim, random, 1, 0, 8);
  }

  // value(i, j, v): what key i has in column j in place of v.
  template <class Value>
  GuardedMatrix results(Backend& backend, const Value& value) {
    GuardedMatrix v = operands.v, out = operands.out;
    for (int64_t i = 0; i < c.keys; ++i) {
      for (int64_t j = 0; j < c.kv_heads * c.head_dim; ++j) {
        write_element(v.view(), i, j, value(i, j, read_element(v.view(), i, j)));
      }
    }
    const model::Operand device_q(backend, q.codes), device_k(backend, k.codes);
    const model::Operand q_scales(backend, q.scales), k_scales(backend, k.scales);
    const model::Operand device_v(backend, v);
    model::Operand device_out(backend, out);
    backend.attention({device_q.view(), device_k.view(), device_v.view(), device_out.view(),
                       c.heads, c.kv_heads, c.causal, q_scales.view(), k_scales.view()});
    device_out.download();
    return out;
  }

  // expect(column, of a, of b) for all results, up to the first failure.
  template <class Expect>
  void compare(GuardedMatrix& a, GuardedMatrix& b, const Expect& expect) {
    for (int64_t i = 0; i < c.rows; ++i) {
      for (int64_t j = 0; j < c.heads * c.head_dim; ++j) {
        SCOPED_TRACE(fmt::format("at [{}, {}]", i, j));
        expect(j, read_element(a.view(), i, j), read_element(b.view(), i, j));
        if (testing::Test::HasFailure()) return;
      }
    }
  }
};

// A power of two in the values is one in the results, bit for bit, also where they are scaled for
// f16 on their way.
TEST_P(Int8AttentionWay, ResultsFollowTheSizeOfValues) {
  WithValues problem({DType::bf16, 33, 3 * keys_ + 200, 2, 1, head_dim_});
  const auto times = [&](float factor) {
    return problem.results(*backend_, [=](int64_t, int64_t, float v) { return v * factor; });
  };
  GuardedMatrix plain = times(1);
  for (const float factor : {0.0f, 0x1p-40f, 0x1p10f, 0x1p80f}) {
    GuardedMatrix scaled = times(factor);
    problem.compare(scaled, plain, [=](int64_t, float a, float b) { EXPECT_EQ(a, b * factor); });
  }
}

// What is no number stays in its channel, and the others are the same bits as without it.
TEST_P(Int8AttentionWay, NanAndInfinityInValuesStayInTheirChannel) {
  WithValues problem({DType::bf16, 33, 3 * keys_ + 5, 2, 2, head_dim_});
  const int64_t key = keys_ + 1, column = head_dim_ + 3;
  const auto with = [&](float bad) {
    return problem.results(*backend_, [=](int64_t i, int64_t j, float v) {
      return i == key && j == column ? bad : v;
    });
  };
  GuardedMatrix plain = with(0);
  for (const float bad : {model::kNaN, INFINITY}) {
    GuardedMatrix harmed = with(bad);
    problem.compare(harmed, plain, [=](int64_t j, float a, float b) {
      if (j == column) {
        EXPECT_FALSE(std::isfinite(a)) << bad;
      } else {
        EXPECT_EQ(a, b) << bad;
      }
    });
  }
}

}  // namespace
}  // namespace octet::test
