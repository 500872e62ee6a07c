// Attention where all operands are codes on the GPU: every kernel forced by name.
#include "backend/coded_values_run.h"
#include "cuda/forced_attention.h"

namespace octet::test {
namespace {

using cuda::FlashKernel;
using model::AttentionCase;
using model::AttentionOperands;

TEST(CodedFlashKernels, RefuseWhatTheyCannot) {
  alignas(16) std::byte memory[16] = {};
  cuda::DeviceTraits device;
  device.major = 9;
  device.shared_bytes_per_block = 227 * 1024;
  for (const FlashKernel& kernel : cuda::flash_kernels()) {
    if (!kernel.int8_values) continue;
    const int64_t channels = 2 * kernel.head_dim;
    const auto codes = TensorView::rows(memory, DType::i8, 5, channels, channels);
    const auto values = TensorView::rows(memory, DType::u8, channels, 128, 128);
    const auto out = TensorView::rows(memory, DType::bf16, 5, channels, channels);
    const auto scales = TensorView::rows(memory, DType::f32, 2, 5, 8);
    const auto value_scales = TensorView::rows(memory, DType::f32, 2, 1, 1);
    const AttentionArgs right{codes, codes, values, out, 2, 2, false, scales, scales, value_scales};
    EXPECT_EQ(kernel.refusal(right, device), "") << kernel.name;
    const auto expect_refused = [&](auto change) {
      AttentionArgs args = right;
      change(args);
      EXPECT_NE(kernel.refusal(args, device), "") << kernel.name;
    };
    expect_refused([&](AttentionArgs& args) { args.v = out; });
    expect_refused([&](AttentionArgs& args) { args.q = args.k = args.v = out; });
    expect_refused([&](AttentionArgs& args) { args.out.dtype = DType::f32; });
    expect_refused([&](AttentionArgs& args) { args.heads = args.kv_heads = 4; });
    expect_refused([&](AttentionArgs& args) { args.v.data += 8; });
    // And the others do not take this.
    EXPECT_NE(cuda::find_flash("flash_256_128x64_s4_int8").refusal(right, device), "");
  }
}

class CodedAttentionWay : public ForcedAttention {
 protected:
  void expect_right(const AttentionCase& c, float deviation = 1,
                    const std::function<void(AttentionOperands&)>& change = {}) {
    ASSERT_EQ(backend_->why_no_int8_values(c.head_dim, c.type), "");
    model::expect_coded_attention_right(*backend_, c, deviation, change);
  }
};

std::vector<std::string> coded_ways() {
  std::vector<std::string> ways;
  for (const FlashKernel& kernel : cuda::flash_kernels()) {
    if (kernel.int8_values) ways.push_back(kernel.name);
  }
  return ways;
}

INSTANTIATE_TEST_SUITE_P(Cuda, CodedAttentionWay, testing::ValuesIn(coded_ways()), print_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CodedAttentionWay);

TEST_P(CodedAttentionWay, RaggedLengths) {
  for (const int64_t rows : {int64_t{1}, rows_ - 1, rows_ + 1, 2 * rows_ + 17}) {
    expect_right({DType::bf16, rows, keys_ + 3, 1, 1, head_dim_});
  }
  for (const int64_t keys : {int64_t{1}, int64_t{2}, int64_t{15}, int64_t{17}, keys_ - 1, keys_,
                             keys_ + 1, 2 * keys_, 3 * keys_ + 5, 23 * keys_ + 7}) {
    expect_right({DType::bf16, 33, keys, 2, 2, head_dim_});
  }
}

TEST_P(CodedAttentionWay, SharedKeysCausalAndLargeScores) {
  expect_right({DType::bf16, 50, 70, 6, 2, head_dim_});
  for (const int64_t length : {int64_t{1}, keys_ + 1, rows_ + 1, 2 * rows_ + 19}) {
    expect_right({DType::bf16, length, length, 2, 1, head_dim_, true});
  }
  expect_right({DType::bf16, 40, 5 * keys_ + 1, 1, 1, head_dim_}, 8);
}

// Rows of zeros; scores that grow from block to block, so that a shift moves in each; scores of
// tens of thousands, whose largest must not round to a code of 256; values that are large, small,
// or 0 in whole blocks.
TEST_P(CodedAttentionWay, HardOperands) {
  const AttentionCase c{DType::bf16, 70, 3 * keys_ + 9, 2, 1, head_dim_};
  const auto set = [](GuardedMatrix& matrix, auto value) {
    const TensorView view = matrix.view();
    for (int64_t i = 0; i < view.shape[0]; ++i) {
      for (int64_t j = 0; j < view.shape[1]; ++j) {
        write_element(view, i, j, value(i, j, read_element(view, i, j)));
      }
    }
  };
  expect_right(c, 1, [&](AttentionOperands& operands) {
    set(operands.q, [](int64_t i, int64_t, float x) { return i % 3 == 0 ? 0 : x; });
  });
  for (const float size : {1.0f, 8.0f}) {
    expect_right(c, 1, [&](AttentionOperands& operands) {
      set(operands.q, [&](int64_t i, int64_t, float x) { return (i % 2 == 0 ? 8 : -8) + x; });
      set(operands.k, [&](int64_t key, int64_t, float x) {
        return size * (static_cast<float>(key / 16) + 0.1f * x);
      });
    });
  }
  for (const float size : {1e4f, 1e-8f}) {
    expect_right(c, 1, [&](AttentionOperands& operands) {
      set(operands.v, [&](int64_t key, int64_t, float x) {
        return key / keys_ == 1 ? 0 : key / keys_ == 2 ? size * x : size * x / 64;
      });
    });
  }
}

TEST_P(CodedAttentionWay, KeepsNan) {
  model::expect_coded_attention_keeps_nan(*backend_, head_dim_, DType::bf16);
}

// The keys of the last tiles are shared among workers, and merged; twice the same bits.
TEST_P(CodedAttentionWay, SharedTilesAreRightAndTheSameAgain) {
  const AttentionCase c{DType::bf16, rows_, 110 * keys_ + 3, 5, 1, head_dim_};
  std::mt19937 random(17);
  model::CodedOperands coded(c, random);
  GuardedMatrix again(DType::bf16, c.rows, c.heads * c.head_dim, c.heads * c.head_dim + 16);
  coded.run(*backend_, c, coded.operands.out);
  coded.run(*backend_, c, again);
  ASSERT_TRUE(same_bits(coded.operands.out.view(), again.view()));
  GuardedMatrix want(DType::f32, c.rows, c.heads * c.head_dim);
  coded.run(*make_cpu_backend({}), c, want);
  model::expect_heads_close(coded.operands.out.view(), want.view(), c);
}

}  // namespace
}  // namespace octet::test
