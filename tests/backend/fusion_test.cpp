// The list of fusions: every row has a name, and an arithmetic that is written down once more here.
#include <optional>

#include "backend/exact_silu.h"
#include "backend/gemm_run.h"

namespace octet::test {
namespace {

constexpr float kAcc[] = {3.0f, -5.0f};  // of two columns, with scales of one
constexpr float kBias[] = {0.25f, 40.0f};

// The first output of these columns; nothing for a fusion that this test does not know.
std::optional<float> expected_output(Fusion fusion) {
  switch (fusion) {
    case Fusion::none: return kAcc[0];
    case Fusion::bias: return kAcc[0] + kBias[0];
    case Fusion::swiglu: return exact_silu(kAcc[0]) * kAcc[1];
  }
  return std::nullopt;
}

float first_output(Backend& backend, const FusionRow& row) {
  GuardedMatrix a(DType::i8, 1, 1), w(DType::i8, 2, 1);
  write_element(a.view(), 0, 0, 1.0f);
  for (int64_t j = 0; j < 2; ++j) write_element(w.view(), j, 0, kAcc[j]);
  std::vector<float> row_scale{1.0f}, col_scale{1.0f, 1.0f}, bias(kBias, kBias + 2);
  const QTensor weight{w.view(), vector_view(col_scale)};
  const QWeight packed = backend.pack(weight, row.biased ? vector_view(bias) : TensorView(), {},
                                      row.gated ? RowOrder::gate_up : RowOrder::plain);
  GuardedMatrix out(DType::f32, 1, output_columns(row.fusion, 2));
  backend.gemm({{a.view(), vector_view(row_scale)}, &packed, out.view()}, row.fusion);
  return read_element(out.view(), 0, 0);
}

TEST(Fusions, EachHasItsName) {
  for (const FusionRow& row : kFusions) EXPECT_EQ(name_of(row.fusion), row.name);
  EXPECT_THROW(name_of(static_cast<Fusion>(kFusionCount)), Error);
}

TEST(Fusions, EachIsComputedByRefAndCpu) {
  const auto ref = make_ref_backend();
  const auto cpu = make_cpu_backend({.threads = 1});
  for (const FusionRow& row : kFusions) {
    const auto expected = expected_output(row.fusion);
    ASSERT_TRUE(expected) << "the fusion " << row.name << " has no expected output in this test";
    EXPECT_EQ(first_output(*ref, row), *expected) << "ref, " << row.name;
    EXPECT_EQ(first_output(*cpu, row), *expected) << "cpu, " << row.name;
  }
}

}  // namespace
}  // namespace octet::test
