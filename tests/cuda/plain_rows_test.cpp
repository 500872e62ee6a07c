// Weights that stay where they are, in plain rows: every kernel of the table has the bits of ref.
#include "cuda/every_kernel.h"
#include "cuda/gemm/pack.h"

namespace octet::test {
namespace {

using EveryKernelOnPlainRows = ForcedKernel;

INSTANTIATE_TEST_SUITE_P(Gemm, EveryKernelOnPlainRows, testing::ValuesIn(candidate_names()),
                         print_name);

TEST_P(EveryKernelOnPlainRows, EqualsRef) {
  const GemmShape cases[] = {
      {1, 32, 16},
      {2, 64, 48},
      {16, 64, 128},
      {17, 96, 144},
      {63, 96, 112},
      {129, 224, 272},
      {257, 160, 1040},
      {130, 416, 592},
      {5, 33, 17},
      {9, 40, 64},               // packed on the way
      {13, 64, 64, 80, 72, 96},  // rows are apart
  };
  for (const GemmShape& shape : cases) GemmRun(shape, 7).borrowing().compare(*backend_);
}

// Around the edges of the tile itself, with more than a pipeline's worth of k.
TEST_P(EveryKernelOnPlainRows, EqualsRefAroundItsOwnTile) {
  const auto [m, n, k] = std::tuple(row().worker_m(), row().worker_n(), row().k);
  const int64_t long_k = int64_t{row().stages + 2} * k;
  const auto compare = [&](const GemmShape& shape, DType type, Fusion fusion) {
    GemmRun(shape, 3).borrowing().compare(*backend_, type, fusion);
  };
  compare({m, n, long_k}, DType::i32, Fusion::none);
  compare({m + 1, n + 32, k + 16}, DType::bf16, Fusion::bias);
  compare({m - 1, n - 32, long_k - 16}, DType::bf16, Fusion::bias);
  compare({2 * m + 7, 2 * n - 32, 3 * k}, DType::bf16, Fusion::swiglu);
}

// Whole tiles and shared ones in one launch, twice: what the first leaves behind must not show.
TEST_P(EveryKernelOnPlainRows, MoreTilesThanTheDeviceHolds) {
  const int64_t side = row().m * row().n <= 64 * 128 ? 40 : 24;
  const int64_t m = row().m * side - 3, n = row().n * side - 32;
  const auto cpu = make_cpu_backend({});
  for (const auto& [k, type, fusion] : {std::tuple{2 * row().k + 16, DType::i32, Fusion::none},
                                        {2 * row().k + 16, DType::bf16, Fusion::swiglu}}) {
    GemmRun run({m, n, k}, 9);
    auto want = run.run(*cpu, type, fusion);
    run.borrowing();
    for (int repeat = 0; repeat < 2; ++repeat) {
      auto got = run.run(*backend_, type, fusion);
      ASSERT_TRUE(same_bits(got.view(), want.view())) << name_of(fusion) << ", run " << repeat;
      ASSERT_TRUE(got.guards_intact());
    }
  }
}

TEST(PlainRows, StayWhereKernelsCanReadThem) {
  alignas(16) std::byte memory[16] = {};
  const auto stay = [&](int64_t n, int64_t k, int64_t stride, int64_t offset = 0) {
    PlainWeight weight;
    weight.codes = ConstTensorView::rows(memory + offset, DType::i8, n, k, stride);
    return cuda::can_stay_plain(weight);
  };
  EXPECT_TRUE(stay(64, 48, 48));
  EXPECT_TRUE(stay(64, 48, 64));
  EXPECT_FALSE(stay(40, 48, 48));
  EXPECT_FALSE(stay(64, 40, 48));
  EXPECT_FALSE(stay(64, 48, 56));
  EXPECT_FALSE(stay(64, 48, 48, 8));
  EXPECT_FALSE(stay(0, 48, 48));
  EXPECT_FALSE(stay(1 << 20, 8192, 8192));
}

}  // namespace
}  // namespace octet::test
