// Files of activation statistics: what is written is read, and anything else is refused.
#include "quant/activations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "formats/error_message.h"
#include "weights/tensor_files.h"

namespace octet::test {
namespace {

using quant::ActivationStatistics;
using quant::read_statistics;

class StatisticsFile : public testing::Test {
 protected:
  std::string refusal_of(const std::vector<Tensor>& tensors, const Metadata& metadata = {}) {
    write_checkpoint(folder_, tensors, metadata);
    return error_of([&] { read_statistics(folder_.file("w.safetensors")); });
  }

  TemporaryFolder folder_;
};

TEST_F(StatisticsFile, RoundTrip) {
  ActivationStatistics statistics;
  // In another order by name than by the length of a name, with a name that is a part of another.
  statistics["conditional.b"] = {.k = 3, .rows_seen = 7, .amax = {1, 0, 2.5f}, .rows = {1, 2, 3}};
  statistics["conditional.b.c"] = {
      .k = 2, .rows_seen = uint64_t{1} << 40, .amax = {1e-20f, 3e38f}, .rows = {1, -2, 3, 4}};
  statistics["unconditional.a"] = {.k = 1, .rows_seen = 1, .amax = {5}, .rows = {-5}};
  const std::string path = folder_.file("s.safetensors");
  quant::write_statistics(path, statistics, {{"job", "x"}});
  const ActivationStatistics read = read_statistics(path);
  ASSERT_EQ(read.size(), statistics.size());
  for (const auto& [name, inputs] : statistics) {
    ASSERT_TRUE(read.contains(name)) << name;
    EXPECT_EQ(read.at(name).k, inputs.k);
    EXPECT_EQ(read.at(name).rows_seen, inputs.rows_seen) << name;
    EXPECT_EQ(read.at(name).amax, inputs.amax);
    EXPECT_EQ(read.at(name).rows, inputs.rows);
    EXPECT_EQ(read.at(name).row_count(), inputs.row_count());
  }
  EXPECT_EQ(folder_.entries(), 1u);
}

TEST_F(StatisticsFile, OtherFilesAreRefused) {
  const Tensor amax = f32("a.amax", {2}, {1, 2}), rows = f32("a.rows", {1, 2}, {1, 2});
  EXPECT_NE(refusal_of({amax, rows, f32("b.weight", {1}, {1})}).find("neither .amax nor .rows"),
            std::string::npos);
  EXPECT_NE(refusal_of({amax}).find("a.rows"), std::string::npos);
  EXPECT_NE(refusal_of({rows}).find("rows without their magnitudes"), std::string::npos);
  EXPECT_NE(refusal_of({amax, f32("a.rows", {1, 3}, {1, 2, 3})}).find("expected rows of 2"),
            std::string::npos);
  EXPECT_NE(refusal_of({amax, f32("a.rows", {2}, {1, 2})}).find("of 2 dimensions"),
            std::string::npos);
  EXPECT_NE(refusal_of({f32("a.amax", {1, 2}, {1, 2}), rows}).find("of 1 dimensions"),
            std::string::npos);
  EXPECT_NE(refusal_of({amax, f32("a.rows", {0, 2}, {})}).find("a.rows"), std::string::npos);
  EXPECT_NE(refusal_of({f32("a.amax", {2}, {1, -2}), rows}).find("negative"), std::string::npos);
  EXPECT_NE(refusal_of({f32("a.amax", {2}, {1, NAN}), rows}).find("NaN"), std::string::npos);
  EXPECT_NE(refusal_of({amax, f32("a.rows", {1, 2}, {1, INFINITY})}).find("infinity"),
            std::string::npos);
  const Tensor wrong = tensor<uint16_t>("a.amax", DType::bf16, {2}, {0, 0});
  EXPECT_NE(refusal_of({wrong, rows}).find("expected F32"), std::string::npos);
}

TEST_F(StatisticsFile, AbsentAndTruncatedOnesAreRefused) {
  EXPECT_NE(error_of([&] { read_statistics(folder_.file("none")); }).find("none"),
            std::string::npos);
  const std::string path = folder_.file("s.safetensors");
  quant::write_statistics(path, {{"a", {.k = 2, .rows_seen = 1, .amax = {1, 2}, .rows = {1, 2}}}});
  const std::string whole = folder_.read("s.safetensors");
  for (size_t size = 0; size < whole.size(); size += 5) {
    folder_.write("s.safetensors", whole.substr(0, size));
    EXPECT_NE(error_of([&] { read_statistics(path); }), "") << size;
  }
}

TEST_F(StatisticsFile, CountsThatMakeNoSenseAreNone) {
  const Tensor amax = f32("a.amax", {2}, {1, 2}), rows = f32("a.rows", {1, 2}, {1, 2});
  for (const char* seen : {"", "x", "-", ","}) {
    write_checkpoint(folder_, {amax, rows}, {{"rows_seen", seen}});
    EXPECT_EQ(read_statistics(folder_.file("w.safetensors")).at("a").rows_seen, 0u) << seen;
  }
}

TEST(ColumnAmax, OfRows) {
  EXPECT_EQ(quant::column_amax(std::vector<float>{1, -5, 0, -2, 3, 0}, 3),
            (std::vector<float>{2, 5, 0}));
}

TEST(SyntheticInputs, HaveOutlierChannels) {
  const auto inputs = quant::synthetic_inputs("a", 400, 64);
  EXPECT_EQ(inputs.row_count(), 64);
  EXPECT_EQ(inputs.amax, quant::column_amax(inputs.rows, 400));
  std::vector<float> sorted = inputs.amax;
  std::sort(sorted.begin(), sorted.end());
  // One channel in a hundred is thirty times as large as the others.
  EXPECT_GT(sorted[396], 8 * sorted[395]);
  EXPECT_LT(sorted[395], 8);
  // By the name alone.
  EXPECT_EQ(quant::synthetic_inputs("a", 400, 64).rows, inputs.rows);
  EXPECT_NE(quant::synthetic_inputs("b", 400, 64).rows, inputs.rows);
  EXPECT_EQ(quant::synthetic_inputs("a", 1, 1).rows.size(), 1u);
}

}  // namespace
}  // namespace octet::test
