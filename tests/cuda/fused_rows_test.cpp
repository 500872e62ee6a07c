// Ops on the GPU that do in one pass what others do in two: the same bits, with rows that start at
// multiples of 16 bytes, as those of models do. Other rows are with the checks of every backend.
#include <set>

#include "backend/fused_norm_run.h"
#include "backend/heads_run.h"
#include "cuda/cuda_support.h"

namespace octet::test::model {
namespace {

using CudaFusedRows = OnGpu;

// Teams that do and do not fill warps, the last that one pass takes, and beyond.
TEST_F(CudaFusedRows, AddGatedNormQuantizeEqualsItsParts) {
  const auto backend = make_gpu();
  std::mt19937 random(61);
  struct FusedShape {
    int64_t rows, channels;
  };
  constexpr FusedShape kShapes[] = {{1, 16},   {7, 64},   {20, 256},  {9, 1040},
                                    {9, 2304}, {7, 4096}, {9, 4608},  {5, 6144},
                                    {5, 9728}, {5, 9984}, {5, 12288}, {3, 16640}};
  for (const DType type : kTypes) {
    for (const auto& [rows, channels] : kShapes) {
      for (const int64_t gap : {0, 16}) {
        expect_fused_norm_equal_its_parts(*backend, {type, rows, channels, gap},
                                          {-1, 0, 4, 16, 64, 256, 1024}, random);
        if (HasFatalFailure()) return;
      }
    }
    expect_fused_norm_equal_its_parts(*backend, {type, 40, 4608, 16, RowNorm::Kind::layer},
                                      {-1, 0, 256}, random);
  }
}

// Several rows in a block, and more than fit the GPU at once: three steps of a block at least, also
// of 4608 channels in bf16 on a GPU with 132 multiprocessors (528 rows at once).
TEST_F(CudaFusedRows, ManyRowsEqualTheirParts) {
  const auto backend = make_gpu();
  std::mt19937 random(63);
  for (const DType type : kTypes) {
    expect_fused_norm_equal_its_parts(*backend, {type, 1000, 256, 0}, {-1, 0, 16, 256}, random);
    expect_fused_norm_equal_its_parts(*backend, {type, 700, 1040, 16}, {-1, 0, 16}, random);
    expect_fused_norm_equal_its_parts(*backend, {type, 300, 4608, 0}, {-1, 0, 256}, random);
    expect_fused_norm_equal_its_parts(*backend, {type, 1400, 4608, 16}, {-1, 0, 256}, random);
    if (HasFatalFailure()) return;
  }
}

// Heads of every team size, lanes without pairs, ragged batches.
TEST_F(CudaFusedRows, HeadsEqualTheirParts) {
  const auto backend = make_gpu();
  std::mt19937 random(62);
  for (const DType type : kTypes) {
    for (const int64_t gap : {0, 16}) {
      for (const HeadsCase& c : {HeadsCase{type, 1, 1, 16, gap}, HeadsCase{type, 40, 18, 32, gap},
                                 HeadsCase{type, 7, 3, 96, gap}, HeadsCase{type, 11, 32, 128, gap},
                                 HeadsCase{type, 9, 24, 128, gap}, HeadsCase{type, 9, 36, 256, gap},
                                 HeadsCase{type, 33, 10, 64, gap}, HeadsCase{type, 5, 7, 512, gap},
                                 HeadsCase{type, 4, 2, 528, gap}}) {
        for (const int64_t second : {int64_t{0}, c.heads / 2, c.heads}) {
          expect_two_weights_equal_two_calls(*backend, c, second, random);
        }
        for (const int64_t with_mean : std::set<int64_t>{0, 1, c.heads / 2}) {
          expect_quantized_heads_right(*backend, c, with_mean, random);
        }
        expect_head_mean_right(*backend, c, random);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// More than fit the GPU at once, and means of several blocks of rows.
TEST_F(CudaFusedRows, ManyHeadsEqualTheirParts) {
  const auto backend = make_gpu();
  std::mt19937 random(64);
  for (const DType type : kTypes) {
    for (const HeadsCase& c : {HeadsCase{type, 1000, 10, 64, 0}, HeadsCase{type, 81, 36, 256, 16},
                               HeadsCase{type, 900, 14, 256, 16}, HeadsCase{type, 128, 5, 16, 0},
                               HeadsCase{type, 129, 3, 512, 16}}) {
      expect_two_weights_equal_two_calls(*backend, c, c.heads / 2, random);
      expect_quantized_heads_right(*backend, c, c.heads / 2, random);
      expect_head_mean_right(*backend, c, random);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace octet::test::model
