// How near work comes to ceilings that were made up.
#include <gtest/gtest.h>

#include "measure/timing.h"
#include "ref/ref_backend.h"

namespace octet::measure {
namespace {

constexpr Ceilings kCeilings = {.int8 = 2e9, .bf16 = 1e9, .copy = 1e6};

TEST(CeilingShare, IsTheTimeAtTheCeilings) {
  const OpWork gemm = {.operations = 1000, .int8_operations = 1000, .bytes = 0.1};
  EXPECT_DOUBLE_EQ(ceiling_share(gemm, 1, DType::bf16, kCeilings), 0.5);
  EXPECT_DOUBLE_EQ(ceiling_share(gemm, 1, DType::f32, kCeilings), 0.5) << "INT8 either way";
  const OpWork matmul = {.operations = 1000};
  EXPECT_DOUBLE_EQ(ceiling_share(matmul, 2, DType::bf16, kCeilings), 0.5);
  EXPECT_EQ(ceiling_share(matmul, 2, DType::f32, kCeilings), 0) << "of F32 nothing is known";
  // Scores in INT8: half of the products at twice the speed.
  const OpWork mixed = {.operations = 1000, .int8_operations = 500};
  EXPECT_DOUBLE_EQ(ceiling_share(mixed, 1, DType::bf16, kCeilings), 0.75);
}

TEST(CeilingShare, OfBytesIsThatOfACopy) {
  const OpWork pass = {.bytes = 3};
  EXPECT_DOUBLE_EQ(ceiling_share(pass, 4, DType::bf16, kCeilings), 0.75);
  // A product of one row moves its weight, and is held against that.
  const OpWork thin = {.operations = 100, .bytes = 3};
  EXPECT_DOUBLE_EQ(ceiling_share(thin, 4, DType::bf16, kCeilings), 0.75);
  EXPECT_EQ(ceiling_share(pass, 4, DType::bf16, {}), 0);
  EXPECT_EQ(ceiling_share(pass, 0, DType::bf16, kCeilings), 0);
}

TEST(Ceilings, OfRefAreThoseOfItsMemory) {
  const Ceilings ceilings = measure_ceilings(*make_ref_backend(1));
  EXPECT_EQ(ceilings.int8, 0);
  EXPECT_EQ(ceilings.bf16, 0);
  EXPECT_GT(ceilings.copy, 0);
}

}  // namespace
}  // namespace octet::measure
