// Attention on the GPU: every fused kernel forced by name over ragged lengths, the path with scores
// in memory, and problems of the size that models have.
#include <algorithm>
#include <cstring>
#include <set>

#include "backend/attention_run.h"
#include "cuda/forced_attention.h"

namespace octet::test {
namespace {

using cuda::FlashKernel;
using model::AttentionCase;
using model::AttentionOperands;

// Rows at multiples of 16 bytes, with gaps between them.
AttentionOperands aligned_operands(const AttentionCase& c, float deviation = 1) {
  std::mt19937 random(static_cast<uint32_t>(c.rows * 31 + c.keys * 7 + c.head_dim));
  AttentionOperands operands(c, random, deviation);
  const int64_t columns = c.heads * c.head_dim, kv_columns = c.kv_heads * c.head_dim;
  operands.q = model::random_matrix(c.type, c.rows, columns, random, deviation, 0, 8);
  operands.v = model::random_matrix(c.type, c.keys, kv_columns, random, 1, 0, 24);
  return operands;
}

// --- without a GPU
// --------------------------------------------------------------------------------

TEST(FlashKernels, OneForEachHeadFitsEveryGpu) {
  constexpr int kSmallest = 99 * 1024;  // of a block on sm_86, 89 and 120
  std::set<int> heads, int8_heads;
  for (const FlashKernel& kernel : cuda::flash_kernels()) {
    EXPECT_LE(kernel.shared_bytes, 227 * 1024) << kernel.name;
    if (kernel.hopper() != nullptr) continue;
    if (kernel.shared_bytes > kSmallest) continue;
    (kernel.int8 ? int8_heads : heads).insert(kernel.head_dim);
  }
  EXPECT_EQ(heads, std::set<int>({64, 128, 256}));
  EXPECT_EQ(int8_heads, std::set<int>({128, 256}));
}

TEST(FlashKernels, RefuseWhatTheyCannot) {
  const FlashKernel& kernel = cuda::find_flash("flash_128_128x64_s4");
  const int enough = kernel.shared_bytes;
  alignas(16) std::byte memory[64] = {};
  const auto refusal = [&](DType type, int64_t head_dim, int64_t gap, int offset, int shared) {
    const auto view = TensorView::rows(memory + offset, type, 4, 2 * head_dim, 2 * head_dim + gap);
    cuda::DeviceTraits device;
    device.major = 8;
    device.shared_bytes_per_block = shared;
    return kernel.refusal({view, view, view, view, 2, 2}, device);
  };
  EXPECT_EQ(refusal(DType::bf16, 128, 0, 0, enough), "");
  EXPECT_EQ(refusal(DType::bf16, 8, 8, 16, enough), "");
  EXPECT_NE(refusal(DType::f32, 128, 0, 0, enough), "");
  EXPECT_NE(refusal(DType::bf16, 136, 0, 0, enough), "");
  EXPECT_NE(refusal(DType::bf16, 100, 0, 0, enough), "");
  EXPECT_NE(refusal(DType::bf16, 128, 4, 0, enough), "");
  EXPECT_NE(refusal(DType::bf16, 128, 0, 2, enough), "");
  EXPECT_NE(refusal(DType::bf16, 128, 0, 0, enough - 1), "");
}

TEST(FlashKernels, OfCodesRefuseOtherHeadsAndTypes) {
  const FlashKernel& kernel = cuda::find_flash("flash_256_128x64_s4_int8");
  alignas(16) std::byte memory[64] = {};
  cuda::DeviceTraits device;
  device.major = 8;
  device.shared_bytes_per_block = kernel.shared_bytes;
  const auto refusal = [&](DType type, int64_t head_dim, int64_t scale_stride) {
    const auto codes = TensorView::rows(memory, type, 5, 2 * head_dim, 2 * head_dim);
    const auto values = TensorView::rows(memory, DType::bf16, 5, 2 * head_dim, 2 * head_dim);
    const auto scales = TensorView::rows(memory, DType::f32, 2, 5, scale_stride);
    return kernel.refusal({codes, codes, values, values, 2, 2, false, scales, scales}, device);
  };
  EXPECT_EQ(refusal(DType::i8, 256, 8), "");
  EXPECT_NE(refusal(DType::bf16, 256, 8), "");
  EXPECT_NE(refusal(DType::i8, 128, 8), "");
  EXPECT_NE(refusal(DType::i8, 256, 6), "");
}

TEST(FlashKernels, WantRoomForAllTheirBlocks) {
  const FlashKernel& kernel = cuda::find_flash("flash_256_64x64_s4_int8");
  cuda::DeviceTraits device;
  device.major = 10;
  device.shared_bytes_per_block = 2 * kernel.shared_bytes + 1024;
  EXPECT_EQ(kernel.unsuitable(device), "");
  --device.shared_bytes_per_block;
  EXPECT_NE(kernel.unsuitable(device), "");
}

TEST(FlashKernels, AnUnknownNameIsOneSentence) {
  try {
    cuda::find_flash("flash_7");
    FAIL() << "accepted";
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("flash_7"), what.npos) << what;
    EXPECT_NE(what.find("flash_256_128x64_s4"), what.npos) << what;
  }
}

// --- the checks that all backends pass; their rows are not aligned
// --------------------------------

using CudaAttention = OnGpu;

TEST_F(CudaAttention, IsRight) { model::expect_attention_right(*make_gpu()); }
TEST_F(CudaAttention, CausalIsRight) { model::expect_causal_attention_right(*make_gpu()); }
TEST_F(CudaAttention, LargeScoresAreRight) {
  model::expect_attention_of_large_scores_right(*make_gpu());
}
TEST_F(CudaAttention, KeepsNanInPlace) { model::expect_attention_keeps_nan_in_place(*make_gpu()); }

// --- every way forced
// -----------------------------------------------------------------------------

class AttentionWay : public ForcedAttention {
 protected:
  void expect_right(const AttentionCase& c, float deviation = 1) {
    SCOPED_TRACE(c.to_string());
    AttentionOperands operands = aligned_operands(c, deviation);
    operands.run(*backend_, c);
    model::compare_attention(operands, c, truth_);
  }

  const model::Truth truth_ = model::Truth::of_cpu();
};

std::vector<std::string> all_ways() {
  std::vector<std::string> ways = {std::string(cuda::kUnfused)};
  for (const FlashKernel& kernel : cuda::flash_kernels()) {
    if (!kernel.int8) ways.push_back(kernel.name);
  }
  return ways;
}

INSTANTIATE_TEST_SUITE_P(Cuda, AttentionWay, testing::ValuesIn(all_ways()), print_name);

TEST_P(AttentionWay, RaggedLengths) {
  for (const int64_t rows : {int64_t{1}, rows_ - 1, rows_, rows_ + 1, 2 * rows_ + 17}) {
    expect_right({DType::bf16, rows, keys_ + 3, 1, 1, head_dim_});
  }
  for (const int64_t keys : {int64_t{1}, int64_t{2}, keys_ - 1, keys_, keys_ + 1, 2 * keys_ - 1,
                             2 * keys_, 3 * keys_ + 5, 5 * keys_ + 8}) {
    expect_right({DType::bf16, 33, keys, 2, 2, head_dim_});
  }
}

TEST_P(AttentionWay, SmallerHeads) {
  if (!takes_smaller_heads_) GTEST_SKIP() << "skipped, because its heads have no other size";
  for (const int64_t head_dim : {int64_t{8}, int64_t{16}, int64_t{40}, head_dim_ - 8}) {
    expect_right({DType::bf16, rows_ + 2, 2 * keys_ + 1, 3, 3, head_dim});
  }
}

TEST_P(AttentionWay, SharedKeysAndCausal) {
  expect_right({DType::bf16, 50, 70, 6, 2, head_dim_});
  for (const int64_t length : {int64_t{1}, keys_, keys_ + 1, rows_, rows_ + 1, 2 * rows_ + 19}) {
    expect_right({DType::bf16, length, length, 2, 1, head_dim_, true});
  }
}

TEST_P(AttentionWay, LargeScores) {
  expect_right({DType::bf16, 40, 5 * keys_ + 1, 1, 1, head_dim_}, 12);
  expect_right({DType::bf16, rows_, rows_, 1, 1, head_dim_, true}, 12);
}

TEST_P(AttentionWay, ViewsIntoOneMatrix) {
  const AttentionCase c{DType::bf16, rows_ + 30, rows_ + 30, 3, 3, head_dim_};
  const int64_t columns = c.heads * c.head_dim;
  std::mt19937 random(5);
  GuardedMatrix qkv = model::random_matrix(c.type, c.rows, 3 * columns, random, 1, 0, 0);
  const auto third = [&](TensorView whole, int64_t part) {
    return TensorView::rows(whole.data + part * columns * 2, c.type, c.rows, columns, 3 * columns);
  };
  AttentionOperands operands(c, random);
  GuardedMatrix* const parts[] = {&operands.q, &operands.k, &operands.v};
  for (int64_t part = 0; part < 3; ++part) {
    for (int64_t i = 0; i < c.rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        write_element(parts[part]->view(), i, j, read_element(third(qkv.view(), part), i, j));
      }
    }
  }
  const model::Operand device_qkv(*backend_, qkv);
  model::Operand device_out(*backend_, operands.out);
  const TensorView whole = device_qkv.view();
  backend_->attention({third(whole, 0), third(whole, 1), third(whole, 2), device_out.view(),
                       c.heads, c.kv_heads, false});
  device_out.download();
  model::compare_attention(operands, c, truth_);
}

TEST_P(AttentionWay, NanStaysInItsRowsAndChannels) {
  const AttentionCase c{DType::bf16, rows_ + 5, 2 * keys_ + 5, 2, 2, head_dim_};
  const auto expect_nan = [&](AttentionOperands& operands, auto is_expected) {
    operands.run(*backend_, c);
    for (int64_t i = 0; i < c.rows; ++i) {
      for (int64_t j = 0; j < c.heads * c.head_dim; ++j) {
        const float value = read_element(operands.out.view(), i, j);
        ASSERT_EQ(std::isnan(value), is_expected(i, j)) << i << " " << j;
      }
    }
  };
  AttentionOperands of_q = aligned_operands(c), of_k = aligned_operands(c);
  AttentionOperands of_v = aligned_operands(c);
  write_element(of_q.q.view(), rows_ + 2, head_dim_ + 3, model::kNaN);
  expect_nan(of_q, [&](int64_t i, int64_t j) { return i == rows_ + 2 && j >= head_dim_; });
  write_element(of_k.k.view(), 2 * keys_ + 4, 5, model::kNaN);
  expect_nan(of_k, [&](int64_t, int64_t j) { return j < head_dim_; });
  write_element(of_v.v.view(), keys_, head_dim_ + 1, model::kNaN);
  expect_nan(of_v, [&](int64_t, int64_t j) { return j == head_dim_ + 1; });
}

// Few rows and many keys: on Hopper the keys of every tile are shared among blocks. All bits are
// the same when it is run again, whoever was last.
TEST_P(AttentionWay, ManyKeysAreRightAndSteady) {
  const AttentionCase c{DType::bf16, 5, 60 * keys_ + 7, 9, 9, head_dim_};
  SCOPED_TRACE(c.to_string());
  AttentionOperands operands = aligned_operands(c), again = aligned_operands(c);
  operands.run(*backend_, c);
  model::compare_attention(operands, c, truth_);
  for (int i = 0; i < 5; ++i) {
    again.run(*backend_, c);
    for (int64_t row = 0; row < c.rows; ++row) {
      for (int64_t j = 0; j < c.heads * head_dim_; ++j) {
        ASSERT_EQ(read_element(again.out.view(), row, j), read_element(operands.out.view(), row, j))
            << row << " " << j;
      }
    }
  }
}

// Keys that nobody wants are no reason to forget those that come after them.
TEST_P(AttentionWay, ScoresOfMinusInfinity) {
  const AttentionCase c{DType::bf16, 40, 3 * keys_, 1, 1, head_dim_};
  AttentionOperands operands = aligned_operands(c);
  for (int64_t i = 0; i < c.rows; ++i) write_element(operands.q.view(), i, 0, 1);
  for (int64_t key = 0; key < keys_; ++key) {
    write_element(operands.k.view(), key, 0, -model::kInf);
  }
  operands.run(*backend_, c);
  // ref on the keys that are left.
  const AttentionCase left{c.type, c.rows, 2 * keys_, 1, 1, head_dim_};
  AttentionOperands rest = aligned_operands(left);
  for (int64_t key = 0; key < left.keys; ++key) {
    for (int64_t j = 0; j < head_dim_; ++j) {
      write_element(rest.k.view(), key, j, read_element(operands.k.view(), keys_ + key, j));
      write_element(rest.v.view(), key, j, read_element(operands.v.view(), keys_ + key, j));
    }
  }
  rest.q = operands.q;
  rest.out = operands.out;
  model::compare_attention(rest, left, truth_);
}

TEST_F(CudaAttention, AForcedKernelRefusesAloud) {
  const auto backend = make_forced("flash_64_128x64_s4");
  const AttentionCase c{DType::f32, 4, 4, 1, 1, 16};
  AttentionOperands operands = aligned_operands(c);
  try {
    operands.run(*backend, c);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("BF16"), std::string::npos) << error.what();
  }
  EXPECT_THROW(make_forced("flash"), Error);
}

// --- large problems, some of whose rows are compared
// ----------------------------------------------

struct LargeCase {
  DType type;
  int64_t length, heads, head_dim;
  bool causal;
};

// Values from -2 to 2, a prime number of them again and again: no two rows are alike.
GuardedMatrix large_matrix(DType type, int64_t rows, int64_t columns) {
  constexpr int64_t kPeriod = 100003;
  GuardedMatrix values(type, 1, kPeriod), matrix(type, rows, columns);
  std::mt19937 random(17);
  std::uniform_real_distribution<float> uniform(-2, 2);
  for (int64_t i = 0; i < kPeriod; ++i) write_element(values.view(), 0, i, uniform(random));
  const int64_t bytes = bits_of(type) / 8, total = rows * columns * bytes;
  for (int64_t at = 0; at < total; at += kPeriod * bytes) {
    const int64_t count = std::min(kPeriod * bytes, total - at);
    std::memcpy(matrix.view().data + at, values.view().data, static_cast<size_t>(count));
  }
  return matrix;
}

// [rows, columns] from an element of a matrix on.
TensorView part_of(const TensorView& matrix, int64_t row, int64_t column, int64_t rows,
                   int64_t columns) {
  const int64_t at = row * matrix.row_stride() + column;
  return TensorView::rows(matrix.data + at * bits_of(matrix.dtype) / 8, matrix.dtype, rows, columns,
                          matrix.row_stride());
}

void expect_rows_right(const LargeCase& c, const std::vector<int64_t>& rows) {
  const int64_t columns = c.heads * c.head_dim;
  GuardedMatrix qkv = large_matrix(c.type, c.length, 3 * columns);
  GuardedMatrix out(c.type, c.length, columns, columns + 8);
  {
    const auto backend = make_gpu();
    const model::Operand device_qkv(*backend, qkv);
    model::Operand device_out(*backend, out);
    const auto third = [&](int64_t part) {
      return part_of(device_qkv.view(), 0, part * columns, c.length, columns);
    };
    backend->attention(
        {third(0), third(1), third(2), device_out.view(), c.heads, c.heads, c.causal});
    device_out.download();
  }

  // The bounds of ops/attention_run.h; a score is at most 2 * 2 * head_dim / sqrt(head_dim).
  const auto head_dim = static_cast<double>(c.head_dim);
  const double of_weights = 2 * (head_dim + 4) * 0x1p-24 * 4 * std::sqrt(head_dim);
  const double of_sums = static_cast<double>(c.length + 16) * 0x1p-24;
  const double of_rounding = c.type == DType::bf16 ? 2 * 0x1p-8 : 0;
  const model::Truth truth = model::Truth::of_cpu();
  GuardedMatrix wide(DType::f32, c.length, 3 * columns), absolute_v(DType::f32, c.length, columns);
  truth.backend->convert(qkv.view(), wide.view());
  for (int64_t i = 0; i < c.length; ++i) {
    const float* v = wide.view().row<float>(i) + 2 * columns;
    std::transform(v, v + columns, absolute_v.view().row<float>(i),
                   [](float x) { return std::fabs(x); });
  }
  for (const int64_t row : rows) {
    SCOPED_TRACE(fmt::format("row {}", row));
    const int64_t visible = c.causal ? row + 1 : c.length;
    GuardedMatrix want(DType::f32, 1, columns), scale(DType::f32, 1, columns);
    AttentionArgs args{part_of(wide.view(), row, 0, 1, columns),
                       part_of(wide.view(), 0, columns, visible, columns),
                       part_of(wide.view(), 0, 2 * columns, visible, columns),
                       want.view(),
                       c.heads,
                       c.heads};
    truth.backend->attention(args);
    args.v = part_of(absolute_v.view(), 0, 0, visible, columns);
    args.out = scale.view();
    truth.backend->attention(args);
    model::expect_close(part_of(out.view(), row, 0, 1, columns), want.view(),
                        [&](int64_t, int64_t j) {
                          return (truth.slack * (of_weights + 2 * of_sums) + of_rounding) *
                                 read_element(scale.view(), 0, j);
                        });
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST_F(CudaAttention, TransformerAt1024Pixels) {
  expect_rows_right({DType::bf16, 4608, 18, 256, false}, {0, 127, 128, 4607});
}

// The last round of tiles is shared: 48 of 132 blocks would have work in it on an H200.
TEST_F(CudaAttention, UnconditionalTransformerAt1024Pixels) {
  expect_rows_right({DType::bf16, 4096, 18, 256, false}, {0, 127, 128, 3000, 4095});
}

TEST_F(CudaAttention, OtherTransformers) {
  expect_rows_right({DType::bf16, 4133, 8, 128, false}, {0, 255, 256, 4132});
  expect_rows_right({DType::bf16, 1100, 16, 64, false}, {0, 191, 192, 1099});
}

TEST_F(CudaAttention, TextOfThousands) {
  expect_rows_right({DType::bf16, 2111, 8, 128, true}, {0, 63, 64, 1000, 2047, 2048, 2110});
}

// Scores of more than a gigabyte, in chunks.
TEST_F(CudaAttention, AutoencoderAt1024Pixels) {
  expect_rows_right({DType::bf16, 16384, 1, 512, false}, {0, 4095, 4096, 12288, 16383});
}

TEST_F(CudaAttention, ChunksOfScoresWithEveryOption) {
  expect_rows_right({DType::f32, 9001, 2, 24, true}, {0, 1, 5000, 7450, 7456, 7460, 9000});
  expect_rows_right({DType::f32, 9001, 1, 24, false}, {0, 7450, 7456, 7460, 9000});
}

}  // namespace
}  // namespace octet::test
