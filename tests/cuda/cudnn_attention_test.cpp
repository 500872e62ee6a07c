// cuDNN's attention as one of Octet's ways, where its library is installed.
#include "cuda/attention/cudnn_attention.h"

#include "backend/attention_run.h"
#include "cuda/cuda_support.h"

namespace octet::test {
namespace {

using model::AttentionCase;

class CudnnWay : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (IsSkipped()) return;
    if (const std::string& why = cuda::CudnnAttention::library_problem(); !why.empty()) {
      GTEST_SKIP() << "skipped, because " << why;
    }
    backend_ = make_forced(std::string(cuda::kCudnn));
  }

  void expect_right(const AttentionCase& c, float deviation = 1) {
    SCOPED_TRACE(c.to_string());
    std::mt19937 random(static_cast<uint32_t>(c.rows * 31 + c.keys * 7 + c.head_dim));
    model::AttentionOperands operands(c, random, deviation);
    const int64_t columns = c.heads * c.head_dim, kv_columns = c.kv_heads * c.head_dim;
    operands.q = model::random_matrix(c.type, c.rows, columns, random, deviation, 0, 8);
    operands.v = model::random_matrix(c.type, c.keys, kv_columns, random, 1, 0, 24);
    operands.run(*backend_, c);
    model::compare_attention(operands, c, truth_);
  }

  std::unique_ptr<Backend> backend_;
  const model::Truth truth_ = model::Truth::of_cpu();
};

TEST_F(CudnnWay, RaggedLengthsAndSharedKeys) {
  for (const int64_t head_dim : {64, 128, 256}) {
    for (const int64_t length : {64, 200, 333}) {
      expect_right({DType::bf16, length, length, 2, 2, head_dim});
    }
    expect_right({DType::bf16, 50, 170, 6, 2, head_dim});
  }
  expect_right({DType::bf16, 40, 321, 1, 1, 128}, 12);
}

// As steps run it: its plan and memory are made before the capture.
TEST_F(CudnnWay, CanBeRecorded) {
  const AttentionCase c{DType::bf16, 300, 300, 2, 2, 128};
  std::mt19937 random(67);
  model::AttentionOperands operands(c, random);
  operands.q = model::random_matrix(c.type, c.rows, 256, random, 1, 0, 8);
  operands.v = model::random_matrix(c.type, c.keys, 256, random, 1, 0, 24);
  GuardedMatrix plain = operands.out;
  const model::Operand q(*backend_, operands.q), k(*backend_, operands.k);
  const model::Operand v(*backend_, operands.v);
  model::Operand first(*backend_, plain), again(*backend_, operands.out);
  const auto attend = [&](const TensorView& out) {
    backend_->attention({q.view(), k.view(), v.view(), out, c.heads, c.kv_heads, c.causal});
  };
  attend(first.view());
  first.download();
  const auto recording = backend_->record([&] { attend(again.view()); });
  for (int i = 0; i < 3; ++i) recording->run();
  EXPECT_GT(recording->launches(), 0);
  again.download();
  for (int64_t i = 0; i < c.rows; ++i) {
    for (int64_t j = 0; j < 256; ++j) {
      ASSERT_EQ(read_element(operands.out.view(), i, j), read_element(plain.view(), i, j))
          << i << " " << j;
    }
  }
}

TEST_F(CudnnWay, RefusesWithAReason) {
  const auto refused = [&](const AttentionCase& c) {
    std::mt19937 random(66);
    model::AttentionOperands operands(c, random);
    try {
      operands.run(*backend_, c);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_NE(refused({DType::bf16, 64, 64, 1, 1, 64, true}).find("it takes no mask"),
            std::string::npos);
  EXPECT_NE(refused({DType::f32, 64, 64, 1, 1, 64}).find("it takes BF16"), std::string::npos);
}

}  // namespace
}  // namespace octet::test
