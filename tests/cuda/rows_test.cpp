// quantize_rows, dequantize_rows and matmul on the GPU.
#include "backend/matmul_run.h"
#include "backend/quantize_cases.h"
#include "backend/search_cases.h"
#include "cuda/cuda_support.h"

namespace octet::test {
namespace {

using CudaRows = OnGpu;

TEST_F(CudaRows, QuantizeEqualsRef) {
  const auto backend = make_gpu();
  compare_with_ref(*backend, cases_of_all_types_and_lengths());
  compare_with_ref(*backend, smooth_cases());
  compare_with_ref(*backend, rotate_cases());
  compare_with_ref(*backend, special_value_cases());
  compare_stepwise_with_ref(*backend, cases_of_all_types_and_lengths());
  compare_stepwise_with_ref(*backend, smooth_cases());
  compare_stepwise_with_ref(*backend, rotate_cases());
  compare_stepwise_with_ref(*backend, special_value_cases());
  expect_ties_to_even(*backend);
}

// Rows as models have them, which the fast kernels take: aligned and dense.
TEST_F(CudaRows, QuantizeOfAlignedRowsEqualsRef) {
  const auto backend = make_gpu();
  const auto ref = make_ref_backend();
  std::mt19937 random(5);
  struct Way {
    Transform transform;
    int64_t group;
    bool stepwise = false;
  };
  const Way ways[] = {
      {Transform::none, 0},           {Transform::smooth, 0},        {Transform::rotate, 4},
      {Transform::rotate, 16},        {Transform::rotate, 64},       {Transform::rotate, 256},
      {Transform::rotate, 1024},      {Transform::none, 0, true},    {Transform::smooth, 0, true},
      {Transform::rotate, 4, true},   {Transform::rotate, 64, true}, {Transform::rotate, 256, true},
      {Transform::rotate, 1024, true}};
  for (const DType type : {DType::bf16, DType::f16, DType::f32}) {
    for (const int64_t k : {16, 64, 512, 1024, 3072, 4096, 4608, 12288, 16384, 24576, 33792}) {
      const int64_t rows = k > 5000 ? 3 : 13;
      GuardedMatrix x(type, rows, k);
      fill_activations(x.view(), random);
      // Row 1 is all zero, row 2 has a NaN.
      for (int64_t j = 0; j < k; ++j) write_element(x.view(), 1, j, 0.0f);
      write_element(x.view(), 2, k / 2, kNan);
      std::vector<float> smooth = random_floats(k, random, 0.1f, 3.0f);
      for (const Way& way : ways) {
        if (way.group > 0 && k % way.group != 0) continue;
        SCOPED_TRACE(fmt::format("{} k={} group={} smooth={} stepwise={}", name_of(type), k,
                                 way.group, way.transform == Transform::smooth, way.stepwise));
        const auto run = [&](Backend& on) {
          GuardedMatrix q(DType::i8, rows, k);
          std::vector<float> scales(static_cast<size_t>(rows), -1.0f);
          const OnDevice device_x(on, x), device_smooth(on, smooth);
          OnDevice device_q(on, q), device_scales(on, scales);
          ActivationTransform transform{
              .kind = way.transform, .group = way.group, .stepwise = way.stepwise};
          if (way.transform == Transform::smooth) {
            transform.smooth = device_smooth(vector_view(smooth));
          }
          on.quantize_rows(device_x(x.view()), transform,
                           {device_q(q.view()), device_scales(vector_view(scales))});
          device_q.download();
          device_scales.download();
          EXPECT_TRUE(q.guards_intact());
          return std::pair(std::move(q), std::move(scales));
        };
        auto [got, got_scales] = run(*backend);
        auto [want, want_scales] = run(*ref);
        ASSERT_TRUE(same_bits(got.view(), want.view()));
        for (size_t i = 0; i < want_scales.size(); ++i) {
          if (std::isnan(want_scales[i]) && std::isnan(got_scales[i])) continue;
          ASSERT_EQ(got_scales[i], want_scales[i]) << "row " << i;
        }
      }
    }
  }
}

TEST_F(CudaRows, SearchedScalesEqualRef) {
  const auto backend = make_gpu();
  for (const int count : {2, 8, 9, kMaxClipRatios}) {
    for (auto& cases : all_search_cases(ratios_down_from_one(count))) {
      compare_with_ref(*backend, std::move(cases));
    }
  }
  expect_one_ratio_is_no_search(*backend);
  expect_the_smaller_error_wins(*backend);
}

TEST_F(CudaRows, DequantizeEqualsRef) { compare_dequantize_with_ref(*make_gpu()); }

TEST_F(CudaRows, MatmulIsRight) {
  const auto backend = make_gpu();
  const auto multiply = matmul::multiply_on(*backend);
  for (const auto& dims : matmul::ragged_shapes()) {
    for (const DType in : {DType::f32, DType::bf16}) {
      for (const DType out : {DType::f32, DType::bf16, DType::f16}) {
        matmul::expect_right(multiply, dims, in, out);
      }
    }
  }
  // Dense and aligned: what goes to the library.
  for (const matmul::Dims& dims : {matmul::Dims{48, 64, 128}, {1, 256, 512}, {130, 72, 1600}}) {
    for (const DType in : {DType::f32, DType::bf16}) {
      for (const DType out : {DType::f32, DType::bf16, DType::f16}) {
        matmul::expect_right(multiply, dims, in, out, 1, false);
      }
    }
  }
  for (const DType type : {DType::f32, DType::bf16}) {
    matmul::expect_nan_and_infinity_in_place(multiply, type);
    matmul::expect_zeros_without_k(multiply, type);
  }
}

}  // namespace
}  // namespace octet::test
