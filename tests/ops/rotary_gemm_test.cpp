// The fusion rotary on ref and cpu: a GEMM and rotate_heads() without the rounding between them.
#include "formats/error_message.h"
#include "ops/rotary_run.h"

namespace octet::test::model {
namespace {

constexpr RotaryCase kCases[] = {{1, 16, 1, 0, 2, 0},
                                 {5, 33, 2, 1, 16, 16},
                                 {9, 40, 1, 1, 64, 24},
                                 {17, 128, 1, 2, 128, 5},
                                 {12, 272, 2, 1, 256, 256}};

TEST(RotaryGemm, RefEqualsItselfInF32) {
  const auto ref = make_ref_backend();
  for (const RotaryCase& c : kCases) RotaryRun(c).compare(*ref);
}

TEST(RotaryGemm, CpuIsNearRef) {
  for (const int threads : {1, 3}) {
    const auto cpu = make_cpu_backend({.threads = threads});
    for (const RotaryCase& c : kCases) RotaryRun(c).compare(*cpu);
  }
}

// What the fused one stands for: in f32 nothing is rounded between the two ops.
TEST(RotaryGemm, IsAGemmAndRotateHeads) {
  const auto ref = make_ref_backend();
  std::vector<float> scales{0.5f, 0.25f}, ones{1.0f, 1.0f, 1.0f, 1.0f};
  std::vector<float> weight{1.0f, 2.0f}, cos{0.5f, 0.25f}, sin{0.75f, -0.5f};
  GuardedMatrix a(DType::i8, 2, 1), w(DType::i8, 4, 1);
  for (int64_t i = 0; i < 2; ++i) write_element(a.view(), i, 0, static_cast<float>(3 + i));
  for (int64_t j = 0; j < 4; ++j) write_element(w.view(), j, 0, static_cast<float>(5 - 3 * j));
  const QWeight packed = ref->pack({w.view(), vector_view(ones)}, {}, {});
  const auto table = [](std::vector<float>& values) {
    return TensorView(vector_view(values).data, DType::f32, {2, 1});
  };
  const HeadRotations heads{1,          0,         0.5f, vector_view(weight), vector_view(weight),
                            table(cos), table(sin)};
  GuardedMatrix fused(DType::f32, 2, 4), plain(DType::f32, 2, 4);
  const QTensor rows{a.view(), vector_view(scales)};
  ref->gemm({rows, &packed, fused.view(), &heads}, Fusion::rotary);
  ref->gemm({rows, &packed, plain.view()}, Fusion::none);
  EXPECT_FALSE(same_bits(fused.view(), plain.view()));
  ref->rotate_heads(TensorView::rows(plain.view().data, DType::f32, 2, 2, 4),
                    {1, 0.5f, vector_view(weight), table(cos), table(sin)});
  EXPECT_TRUE(same_bits(fused.view(), plain.view()));
}

TEST(RotaryGemm, HostsDoNotFuseIt) {
  GemmProblem problem{.m = 4, .n = 768, .k = 16, .fusion = Fusion::rotary, .head_dim = 256};
  EXPECT_FALSE(make_ref_backend()->fuses(problem));
  EXPECT_FALSE(make_cpu_backend({.threads = 1})->fuses(problem));
  problem.fusion = Fusion::swiglu;
  EXPECT_TRUE(make_cpu_backend({.threads = 1})->fuses(problem));
}

TEST(RotaryGemm, ArgumentsThatDoNotFitAreRefused) {
  const auto ref = make_ref_backend();
  std::vector<float> scales{1, 1}, ones(8, 1.0f);
  GuardedMatrix a(DType::i8, 2, 1), w(DType::i8, 8, 1), out(DType::f32, 2, 8),
      f16(DType::f16, 2, 8);
  const QWeight packed = ref->pack({w.view(), vector_view(ones)}, {}, {});
  const TensorView weight(vector_view(ones).data, DType::f32, {4});
  const TensorView angles(vector_view(ones).data, DType::f32, {2, 2});
  const HeadRotations good{1, 1, 0, weight, weight, angles, angles};
  const auto error = [&](const HeadRotations* heads, const TensorView& to) {
    return error_of([&] {
      ref->gemm({{a.view(), vector_view(scales)}, &packed, to, heads}, Fusion::rotary);
    });
  };
  HeadRotations bad = good;
  EXPECT_TRUE(contains(error(nullptr, out.view()), "needs heads to rotate"));
  bad.k_heads = 2;
  EXPECT_TRUE(contains(error(&bad, out.view()), "1 and 2 heads of 4 columns, but n=8"));
  bad = good;
  bad.q_weight.shape = {3};
  EXPECT_TRUE(contains(error(&bad, out.view()), "expected a vector of even length"));
  bad = good;
  bad.k_weight.shape = {2};
  EXPECT_TRUE(contains(error(&bad, out.view()), "the weight of the norm of k"));
  bad = good;
  bad.sin.shape = {1, 2};
  EXPECT_TRUE(contains(error(&bad, out.view()), "expected a dense [2, 2]"));
  EXPECT_TRUE(contains(error(&good, f16.view()), "rotated heads are F32 or BF16, got F16"));
}

}  // namespace
}  // namespace octet::test::model
