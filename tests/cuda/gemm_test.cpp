// Every row of the tile table, whole tiles and shared ones, forced by name: the bits of ref.
#include "backend/kernel_watch.h"
#include "cuda/every_kernel.h"

namespace octet::test {
namespace {

using EveryCudaKernel = ForcedKernel;

INSTANTIATE_TEST_SUITE_P(Gemm, EveryCudaKernel, testing::ValuesIn(candidate_names()), print_name);

TEST_P(EveryCudaKernel, RunsWhenForced) {
  const KernelWatch watch(*backend_);
  GemmRun({3, 8, 16}, 1).run(*backend_, DType::f32, Fusion::none);
  EXPECT_EQ(watch.kernel(), GetParam());
  EXPECT_EQ(watch.gemms(), 1);
}

TEST_P(EveryCudaKernel, EqualsRefOnRaggedShapes) {
  const GemmShape cases[] = {
      {1, 1, 1},
      {1, 8, 16},
      {2, 7, 15},
      {1, 40, 0},
      {3, 1000, 0},
      {5, 33, 17},
      {16, 64, 128},
      {17, 72, 144},
      {63, 95, 129},
      {64, 96, 256},
      {130, 258, 272},
      {129, 200, 1040},
      {257, 194, 592},
      {13, 32, 64, 80, 48},      // rows apart and aligned
      {13, 29, 61, 80, 64},      // rows apart, the rest unaligned
      {50, 70, 1200, 1203, 71},  // nothing is aligned
  };
  for (const GemmShape& shape : cases) GemmRun(shape, 7).compare(*backend_);
}

// Around the edges of the tile itself, with more than a pipeline's worth of k.
TEST_P(EveryCudaKernel, EqualsRefAroundItsOwnTile) {
  const auto [m, n, k] = std::tuple(row().worker_m(), row().worker_n(), row().k);
  const int64_t long_k = int64_t{row().stages + 2} * k;
  GemmRun({m, n, long_k}, 3).compare(*backend_, DType::i32, Fusion::none);
  GemmRun({m + 1, n + 8, k + 16}, 4).compare(*backend_);
  GemmRun({m - 1, n - 8, long_k - 16}, 5).compare(*backend_, DType::bf16, Fusion::bias);
  GemmRun({2 * m + 7, 2 * n - 2, 3 * k}, 6).compare(*backend_, DType::bf16, Fusion::swiglu);
}

// Whole tiles and shared ones in one launch, twice: what the first leaves behind must not show. The
// CPU gives the bits of ref, and faster.
TEST_P(EveryCudaKernel, MoreTilesThanTheDeviceHolds) {
  // Small tiles have several blocks on a multiprocessor.
  const int64_t side = row().m * row().n <= 64 * 128 ? 40 : 24;
  const int64_t m = row().m * side - 3, n = row().n * side - 8;
  const auto cpu = make_cpu_backend({});
  // Tiles of one stage too, where warps can be several tiles apart, and those that are longer than
  // the pipeline, where they cannot.
  const int long_k = (row().stages + 1) * row().k + 16;
  for (const auto& [k, type, fusion] : {std::tuple{2 * row().k + 16, DType::i32, Fusion::none},
                                        {2 * row().k + 16, DType::bf16, Fusion::swiglu},
                                        {16, DType::bf16, Fusion::none},
                                        {long_k, DType::bf16, Fusion::none}}) {
    GemmRun run({m, n, k}, 9);
    auto want = run.run(*cpu, type, fusion);
    for (int repeat = 0; repeat < 2; ++repeat) {
      auto got = run.run(*backend_, type, fusion);
      ASSERT_TRUE(same_bits(got.view(), want.view())) << name_of(fusion) << ", run " << repeat;
      ASSERT_TRUE(got.guards_intact());
    }
  }
}

TEST_P(EveryCudaKernel, ExtremeValuesAndScales) {
  GemmRun({20, 64, 336}, 13, -128).compare(*backend_);
  GemmRun scales({6, 40, 96}, 17);
  scales.row_scale() = {std::nanf(""), INFINITY, 0.0f, 1e-38f, -INFINITY, 3e38f};
  scales.compare(*backend_);
  GemmRun largest({1, 2, kMaxK}, 5);
  std::fill_n(largest.a().row<int8_t>(0), kMaxK, int8_t{127});
  std::fill_n(largest.w().row<int8_t>(0), kMaxK, int8_t{-128});
  std::fill_n(largest.w().row<int8_t>(1), kMaxK, int8_t{127});
  largest.compare(*backend_, DType::i32, Fusion::none);
}

TEST_P(EveryCudaKernel, SwigluOfAllGates) {
  auto run = run_of_all_gates();
  for (const auto type : {DType::f32, DType::bf16, DType::f16}) {
    run.compare(*backend_, type, Fusion::swiglu);
  }
}

using CudaGemm = OnGpu;

TEST_F(CudaGemm, ThePlannersChoiceEqualsRef) {
  const auto backend = make_gpu();
  for (const GemmShape& shape : {GemmShape{1, 512, 512},
                                 {8, 256, 768},
                                 {64, 96, 1024},
                                 {300, 700, 608},
                                 {0, 8, 16},
                                 {8, 0, 16}}) {
    GemmRun(shape, 21).compare(*backend);
  }
}

TEST_F(CudaGemm, AForcedKernelThatDoesNotFitSaysWhy) {
  // As many tiles as blocks always fit: nothing is left to share.
  const int multiprocessors = find_cuda_devices().devices[0].multiprocessors;
  const auto& candidate = cuda::gemm_candidates()[1];
  ASSERT_TRUE(candidate.streams);
  const auto backend = make_gpu(candidate.name);
  const int64_t n = int64_t{candidate.row->n} * multiprocessors * 4;
  GemmRun run({candidate.row->m, n, 16}, 1);
  try {
    run.run(*backend, DType::bf16, Fusion::none);
    GTEST_SKIP() << "skipped, because this GPU holds another number of blocks";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(candidate.name), std::string::npos) << error.what();
  }
}

TEST_F(CudaGemm, ForeignWeightsAreRefused) {
  GuardedMatrix w(DType::i8, 6, 8);
  std::mt19937 random(1);
  fill_int8(w.view(), random);
  std::vector<float> col_scale(6, 1.0f);
  const QWeight foreign = make_ref_backend()->pack({w.view(), vector_view(col_scale)}, {}, {});
  const auto backend = make_gpu();
  const Buffer a = backend->allocate(64), scale = backend->allocate(64),
               out = backend->allocate(64);
  GemmArgs args{{a.view(DType::i8, {1, 8}), scale.view(DType::f32, {1})},
                &foreign,
                out.view(DType::f32, {1, 6})};
  try {
    backend->gemm(args, Fusion::none);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("ref_rows"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace octet::test
