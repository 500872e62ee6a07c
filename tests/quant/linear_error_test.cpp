// Errors of a linear by each recipe, against plain loops and on planted outliers.
#include "quant/linear_error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "cpu/cpu_backend.h"
#include "formats/error_message.h"
#include "quant/smoothing.h"
#include "ref/ref_backend.h"
#include "weights/dialect.h"
#include "weights/tensor_files.h"

namespace octet::test {
namespace {

constexpr int64_t kOut = 96, kIn = 256, kSamples = 40;

// A weight and the rows that it sees; `outliers` plants channels in both.
struct Planted {
  std::vector<float> weight;
  quant::LinearInputs inputs;
  std::vector<float> smooth;
};

Planted plant(bool outliers, bool powers_of_two) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  Planted planted;
  planted.weight.resize(kOut * kIn);
  for (float& value : planted.weight) value = normal(random) / 16;
  planted.inputs.k = kIn;
  planted.inputs.rows.resize(kSamples * kIn);
  for (float& value : planted.inputs.rows) value = normal(random);
  // Channels of activations that are large, and others of weights; none is both.
  for (const int64_t column : {17, 90, 201}) {
    for (int64_t i = 0; outliers && i < kSamples; ++i) {
      planted.inputs.rows[static_cast<size_t>(i * kIn + column)] *= 50;
    }
  }
  for (const int64_t column : {5, 140}) {
    for (int64_t i = 0; outliers && i < kOut; ++i) {
      planted.weight[static_cast<size_t>(i * kIn + column)] *= 20;
    }
  }
  planted.inputs.amax = quant::column_amax(planted.inputs.rows, kIn);
  planted.smooth = quant::smooth_factors(
      planted.inputs.amax, quant::column_amax(planted.weight, kIn), 0.5f, powers_of_two);
  return planted;
}

class LinearErrorTest : public testing::Test {
 protected:
  LinearError measure(const Planted& planted, const quant::ErrorOptions& options) {
    return measure(*make_cpu_backend({.threads = 1}), planted, options);
  }
  LinearError measure(Backend& backend, const Planted& planted,
                      const quant::ErrorOptions& options) {
    const Checkpoint file =
        write_checkpoint(folder_, {f32("a.weight", {kOut, kIn}, planted.weight)});
    std::vector<std::unique_ptr<weights::StoredWeight>> weights;
    weights.push_back(weights::open_weight(file, "a", kOut, kIn));
    const quant::WeightRows rows(weights, 0, kOut);
    return measure_error(backend, "a", rows, planted.inputs, planted.smooth, options);
  }

  TemporaryFolder folder_;
};

// W8A8 in double, from the definition.
double rowwise_nrmse(const Planted& planted) {
  const auto quantized = [](const std::vector<float>& rows) {
    std::vector<double> made(rows.size());
    for (size_t begin = 0; begin < rows.size(); begin += kIn) {
      double amax = 0;
      for (size_t j = 0; j < kIn; ++j) {
        amax = std::max(amax, std::abs(static_cast<double>(rows[begin + j])));
      }
      for (size_t j = 0; j < kIn; ++j) {
        made[begin + j] = std::nearbyint(rows[begin + j] * 127 / amax) * amax / 127;
      }
    }
    return made;
  };
  const auto w = quantized(planted.weight), x = quantized(planted.inputs.rows);
  double error = 0, squares = 0;
  for (size_t i = 0; i < kSamples; ++i) {
    for (size_t o = 0; o < kOut; ++o) {
      double exact = 0, got = 0;
      for (size_t j = 0; j < kIn; ++j) {
        exact += static_cast<double>(planted.inputs.rows[i * kIn + j]) *
                 static_cast<double>(planted.weight[o * kIn + j]);
        got += x[i * kIn + j] * w[o * kIn + j];
      }
      error += (got - exact) * (got - exact);
      squares += exact * exact;
    }
  }
  return std::sqrt(error / squares);
}

TEST_F(LinearErrorTest, IsThatOfTheDefinition) {
  for (const bool outliers : {false, true}) {
    const Planted planted = plant(outliers, false);
    const LinearError error = measure(planted, {.clip = false});
    // Some values lie next to a half and get the other code: a few of 256 times 40.
    EXPECT_NEAR(error.rowwise / rowwise_nrmse(planted), 1, 0.01);
    EXPECT_EQ(error.n, kOut);
    EXPECT_EQ(error.k, kIn);
    EXPECT_EQ(error.module, "a");
    // BF16 keeps 8 bits of each of two factors: 2^-9 / sqrt(3) of each, and the spread of values
    // within a power of two.
    EXPECT_GT(error.unquantized, 5e-4);
    EXPECT_LT(error.unquantized, 3e-3);
    EXPECT_LT(error.unquantized, error.rowwise / 3);
  }
}

TEST_F(LinearErrorTest, PlantedOutliersCostHalfAtMost) {
  for (const bool powers_of_two : {false, true}) {
    const LinearError error = measure(plant(true, powers_of_two), {});
    EXPECT_LE(error.smoothquant, error.rowwise / 2);
    EXPECT_LE(error.convrot, error.rowwise / 2);
  }
}

TEST_F(LinearErrorTest, WithoutOutliersAllAreAlike) {
  const LinearError error = measure(plant(false, false), {});
  EXPECT_NEAR(error.smoothquant / error.rowwise, 1, 0.15);
  EXPECT_NEAR(error.convrot / error.rowwise, 1, 0.15);
}

TEST_F(LinearErrorTest, DoesNotDependOnChunksOrBackend) {
  const Planted planted = plant(true, false);
  const LinearError whole = measure(planted, {});
  const LinearError chunks = measure(planted, {.limit = {.bytes = 7 * kIn * 4}});
  // The same squares in double, added in another order.
  EXPECT_NEAR(chunks.rowwise / whole.rowwise, 1, 1e-12);
  EXPECT_NEAR(chunks.convrot / whole.convrot, 1, 1e-12);
  for (size_t i = 0; i < whole.worst_rows.size(); ++i) {
    EXPECT_EQ(chunks.worst_rows[i].index, whole.worst_rows[i].index);
  }
  const LinearError ref = measure(*make_ref_backend(), planted, {});
  EXPECT_NEAR(ref.rowwise / whole.rowwise, 1, 1e-3);
  EXPECT_NEAR(ref.smoothquant / whole.smoothquant, 1, 1e-3);
  EXPECT_NEAR(ref.convrot / whole.convrot, 1, 1e-3);
}

TEST_F(LinearErrorTest, NamesTheWorstRowsAndColumns) {
  Planted planted = plant(true, false);
  // One large weight in a row makes its step large.
  planted.weight[33 * kIn + 60] = 40;
  const LinearError error = measure(planted, {.recipe = {.kind = Recipe::Kind::rowwise}});
  ASSERT_EQ(error.worst_rows.size(), 3u);
  EXPECT_EQ(error.worst_rows[0].index, 33);
  EXPECT_GT(error.worst_rows[0].value, error.worst_rows[1].value);
  double sum = 0;
  for (const auto& place : error.worst_rows) sum += place.value;
  EXPECT_LE(sum, 1 + 1e-9);
  std::vector<int64_t> columns;
  for (const auto& place : error.worst_columns) {
    columns.push_back(place.index);
    EXPECT_GT(place.value, 20);  // planted: fifty times
  }
  std::sort(columns.begin(), columns.end());
  EXPECT_EQ(columns, (std::vector<int64_t>{17, 90, 201}));
}

TEST_F(LinearErrorTest, ClippingNeverLosesMuch) {
  Planted planted = plant(false, false);
  for (int64_t row = 0; row < kOut; ++row) {
    planted.weight[static_cast<size_t>(row * kIn + row)] = 1;  // five times the others
  }
  // To cut these off would make an error of a quarter of their size.
  const LinearError clipped = measure(planted, {.clip = true});
  const LinearError plain = measure(planted, {.clip = false});
  EXPECT_LT(clipped.rowwise, 1.02 * plain.rowwise);
}

TEST_F(LinearErrorTest, ZerosHaveNoError) {
  Planted planted = plant(false, false);
  std::fill(planted.weight.begin(), planted.weight.end(), 0.0f);
  const LinearError error = measure(planted, {});
  EXPECT_EQ(error.rowwise, 0);
  EXPECT_EQ(error.convrot, 0);
}

TEST_F(LinearErrorTest, InputsOfAnotherWidthAreRefused) {
  Planted planted = plant(false, false);
  planted.inputs.k = kIn / 2;
  EXPECT_NE(error_of([&] { measure(planted, {}); }).find("expected some of 256"),
            std::string::npos);
  planted = plant(false, false);
  planted.smooth.pop_back();
  EXPECT_NE(error_of([&] { measure(planted, {}); }), "");
  planted = plant(false, false);
  planted.inputs.rows.clear();
  EXPECT_NE(error_of([&] { measure(planted, {}); }).find("0 rows"), std::string::npos);
}

}  // namespace
}  // namespace octet::test
