// Rows of modules that are stored in other chunks than they are written in, and passes over them.
#include "quant/weight_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "cpu/cpu_backend.h"
#include "formats/error_message.h"
#include "quant/recipe.h"
#include "weights/dialect.h"
#include "weights/tensor_files.h"

namespace octet::test {
namespace {

using quant::ChunkLimit;
using quant::WeightRows;
using Weights = std::vector<std::unique_ptr<weights::StoredWeight>>;

constexpr int64_t kColumns = 8;

std::vector<float> random_rows(int64_t rows, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(rows * kColumns));
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<float> row_at(const WeightRows& rows, int64_t row) {
  std::vector<float> values(static_cast<size_t>(rows.k()));
  rows.read_as(row, DType::f32, nullptr, 1, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

class WeightRowsTest : public testing::Test {
 protected:
  // Modules "0", "1", ... of these many rows.
  void write(const std::vector<int64_t>& sizes) {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const auto values = random_rows(sizes[i], static_cast<unsigned>(i));
      all_.insert(all_.end(), values.begin(), values.end());
      tensors.push_back(f32(std::to_string(i) + ".weight", {sizes[i], kColumns}, values));
    }
    open(tensors, sizes);
  }

  void open(const std::vector<Tensor>& tensors, const std::vector<int64_t>& sizes) {
    file_.emplace(write_checkpoint(folder_, tensors));
    for (size_t i = 0; i < sizes.size(); ++i) {
      weights_.push_back(weights::open_weight(*file_, std::to_string(i), sizes[i], kColumns));
    }
  }

  std::vector<float> row_of_all(int64_t row) const {
    const auto begin = all_.begin() + row * kColumns;
    return {begin, begin + kColumns};
  }

  TemporaryFolder folder_;
  std::optional<Checkpoint> file_;
  Weights weights_;
  std::vector<float> all_;
};

TEST_F(WeightRowsTest, PartsOfOneAndSeveralInOne) {
  write({3, 1, 4});
  const WeightRows whole(weights_, 0, 8);
  for (int64_t row = 0; row < 8; ++row) EXPECT_EQ(row_at(whole, row), row_of_all(row)) << row;
  const WeightRows middle(weights_, 2, 3);  // of all three
  EXPECT_EQ(middle.rows(), 3);
  for (int64_t row = 0; row < 3; ++row) EXPECT_EQ(row_at(middle, row), row_of_all(2 + row));
  EXPECT_EQ(whole.bytes(), all_.size() * sizeof(float));
  EXPECT_EQ(middle.bytes(), whole.bytes() * 3 / 8);
}

TEST_F(WeightRowsTest, RangesOutsideAreRefused) {
  write({3, 1});
  EXPECT_NE(error_of([&] { WeightRows(weights_, 0, 5); }), "");
  EXPECT_NE(error_of([&] { WeightRows(weights_, -1, 2); }), "");
  EXPECT_NE(error_of([&] { WeightRows(weights_, 0, 0); }), "");
  EXPECT_NE(error_of([&] { WeightRows(Weights(), 0, 1); }), "");
  const WeightRows rows(weights_, 1, 3);
  std::vector<float> values(kColumns);
  EXPECT_NE(error_of([&] { rows.read(3, reinterpret_cast<std::byte*>(values.data())); }), "");
}

TEST_F(WeightRowsTest, TypesThatDifferAreReadAsF32) {
  const std::vector<float> first = random_rows(2, 0);
  std::vector<bf16_t> second;
  for (const float value : random_rows(2, 1)) second.push_back(from_f32<bf16_t>(value));
  open({f32("0.weight", {2, kColumns}, first),
        tensor("1.weight", DType::bf16, {2, kColumns}, second)},
       {2, 2});
  const WeightRows rows(weights_, 0, 4);
  EXPECT_EQ(rows.dtype(), DType::f32);
  std::vector<float> expected(first.begin() + kColumns, first.end());
  EXPECT_EQ(row_at(rows, 1), expected);
  for (size_t j = 0; j < kColumns; ++j) expected[j] = to_f32(second[j]);
  EXPECT_EQ(row_at(rows, 2), expected);
  EXPECT_EQ(WeightRows(std::span(weights_).subspan(1), 0, 2).dtype(), DType::bf16);
}

TEST_F(WeightRowsTest, FactorsOfColumnsAndRows) {
  write({2});
  const WeightRows rows(weights_, 0, 2);
  const std::vector<float> columns = {1, 2, 0.5f, 4, 1, 1, 8, 0.25f};
  std::vector<bf16_t> got(kColumns);
  rows.read_as(1, DType::bf16, &columns, 4, reinterpret_cast<std::byte*>(got.data()));
  for (size_t j = 0; j < kColumns; ++j) {
    const float expected = row_of_all(1)[j] * columns[j] / 4;
    EXPECT_EQ(to_f32(got[j]), to_f32(from_f32<bf16_t>(expected)));
  }
}

TEST_F(WeightRowsTest, LargestOfColumns) {
  write({3, 70});
  ThreadPool pool(2);
  const auto amax = column_amax(pool, WeightRows(weights_, 1, 72));
  for (int64_t j = 0; j < kColumns; ++j) {
    float expected = 0;
    for (int64_t row = 1; row < 73; ++row) {
      expected = std::max(expected, std::abs(row_of_all(row)[static_cast<size_t>(j)]));
    }
    EXPECT_EQ(amax[static_cast<size_t>(j)], expected);
  }
}

TEST_F(WeightRowsTest, ChunksKeepToTheirLimit) {
  write({5, 6});
  const WeightRows rows(weights_, 0, 11);
  const int64_t row_bytes = kColumns * 4;
  EXPECT_EQ((ChunkLimit{.bytes = 3 * row_bytes}.rows(rows)), 3);
  EXPECT_EQ((ChunkLimit{.bytes = 4 * row_bytes - 1}.rows(rows)), 3);
  EXPECT_EQ((ChunkLimit{.bytes = 1}.rows(rows)), 1);  // less than a row is not possible
  EXPECT_EQ((ChunkLimit{.bytes = 1 << 20}.rows(rows)), 11);
}

// Chunks of any size give the same codes, and these are the weight within half a step.
TEST_F(WeightRowsTest, CodesDoNotDependOnTheChunks) {
  write({5, 6});
  const auto backend = make_cpu_backend({.threads = 1});
  const WeightRows rows(weights_, 1, 10);
  const auto codes_in_chunks = [&](int64_t bytes, size_t chunks) {
    std::vector<float> values;
    size_t calls = 0;
    quantize_chunks(*backend, rows, {}, quant::clip_ratios(false), {.bytes = bytes},
                    [&](int64_t first, const QTensor& codes) {
                      EXPECT_EQ(static_cast<size_t>(first * kColumns), values.size());
                      ++calls;
                      for (int64_t row = 0; row < codes.rows(); ++row) {
                        const float scale = codes.scales.as<float>()[row];
                        for (int64_t j = 0; j < kColumns; ++j) {
                          const float code = codes.values.as<int8_t>()[row * kColumns + j];
                          const float exact = row_of_all(1 + first + row)[static_cast<size_t>(j)];
                          EXPECT_LE(std::abs(exact - code * scale), 0.5001f * scale);
                          values.push_back(code * scale);
                        }
                      }
                    });
    EXPECT_EQ(calls, chunks);
    return values;
  };
  const auto whole = codes_in_chunks(1 << 20, 1);
  EXPECT_EQ(whole.size(), 10u * kColumns);
  EXPECT_EQ(codes_in_chunks(kColumns * 4, 10), whole);
  EXPECT_EQ(codes_in_chunks(4 * kColumns * 4, 3), whole);
}

TEST_F(WeightRowsTest, RowsWithoutANumberOrTooLargeAreRefused) {
  const auto backend = make_cpu_backend({.threads = 1});
  for (const float bad : {NAN, INFINITY}) {
    std::vector<float> values = random_rows(3, 0);
    values[kColumns + 2] = bad;
    weights_.clear();
    open({f32("0.weight", {3, kColumns}, values)}, {3});
    const WeightRows rows(weights_, 0, 3);
    EXPECT_NE(error_of([&] {
                quantize_chunks(*backend, rows, {}, quant::clip_ratios(true), {},
                                [](int64_t, const QTensor&) {});
              }),
              "");
  }
}

}  // namespace
}  // namespace octet::test
