// Cases of quantize_rows_searched, run on any backend.
#pragma once

#include "backend/quantize_cases.h"

namespace octet::test {

// 1, 0.97, 0.94, ...: at 32 of them, the last is 0.07.
inline std::vector<float> ratios_down_from_one(int count) {
  std::vector<float> ratios;
  for (int i = 0; i < count; ++i) ratios.push_back(1.0f - 0.03f * static_cast<float>(i));
  return ratios;
}

// An even bulk in [-1, 1] and one value beyond, which is further out from row to row: first the
// finer steps of the bulk are worth clipping it, then no longer.
inline GuardedMatrix bulk_and_outlier(DType type, int64_t rows, int64_t k, std::mt19937& random) {
  GuardedMatrix x(type, rows, k);
  for (int64_t i = 0; i < rows; ++i) {
    const auto bulk = random_floats(k, random, -1.0f, 1.0f);
    for (int64_t j = 0; j < k; ++j) {
      const float outlier = 1.0f + 0.1f * static_cast<float>(i);
      write_element(x.view(), i, j, j == k / 3 ? -outlier : bulk[static_cast<size_t>(j)]);
    }
  }
  return x;
}

// Rows in which several ratios win; rows longer than a GPU's shared memory; more rows than it has
// room for blocks.
inline std::vector<QuantizeCase> outlier_cases() {
  std::mt19937 random(95);
  std::vector<QuantizeCase> cases;
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    cases.push_back(
        {fmt::format("outliers in {}", name_of(type)), bulk_and_outlier(type, 6, 20'011, random)});
  }
  for (const int64_t group : {0, 16, 256, 1024}) {
    cases.push_back({fmt::format("long rows, group {}", group),
                     bulk_and_outlier(DType::bf16, 2, 53'248, random),
                     group > 0 ? Transform::rotate : Transform::none, group});
  }
  cases.push_back({"many rows", bulk_and_outlier(DType::bf16, 1500, 20, random)});
  cases.push_back({"empty rows", GuardedMatrix(DType::f32, 3, 0)});
  cases.push_back({"no rows", GuardedMatrix(DType::f32, 0, 8)});
  return cases;
}

inline std::vector<std::vector<QuantizeCase>> all_search_cases(const std::vector<float>& ratios) {
  std::vector<std::vector<QuantizeCase>> all;
  all.push_back(cases_of_all_types_and_lengths());
  all.push_back(smooth_cases());
  all.push_back(rotate_cases());
  all.push_back(special_value_cases());
  all.push_back(outlier_cases());
  for (auto& cases : all) {
    for (QuantizeCase& input : cases) input.ratios = ratios;
  }
  return all;
}

inline void expect_one_ratio_is_no_search(Backend& backend) {
  for (auto& cases : all_search_cases({1.0f})) {
    for (QuantizeCase& searched : cases) {
      SCOPED_TRACE(searched.what);
      Quantized got(backend, searched);
      searched.ratios.clear();
      expect_same(std::move(got), Quantized(backend, searched));
    }
  }
}

// 254 among integers up to 127, of which `odd` are odd. Codes for 254 are steps of 2: each odd
// integer is 1 away. Codes for half of it are exact, but for 254 itself, which is 127 away. So they
// win when odd > 127 * 127, and at 127 * 127 it is a tie.
inline QuantizeCase odd_integers(int64_t odd) {
  constexpr int64_t kColumns = 16'400;
  QuantizeCase input{fmt::format("{} odd integers", odd), GuardedMatrix(DType::f32, 1, kColumns)};
  for (int64_t j = 0; j < kColumns - 1; ++j) {
    const int64_t value = 2 * (j % 127 - 63) + (j < odd ? 1 : 0);
    write_element(input.x.view(), 0, j, static_cast<float>(value));
  }
  write_element(input.x.view(), 0, kColumns - 1, 254.0f);
  return input;
}

inline void expect_the_smaller_error_wins(Backend& backend) {
  const auto scale_of = [&](QuantizeCase input, std::vector<float> ratios) {
    input.ratios = std::move(ratios);
    Quantized got(backend, input);
    for (int64_t j = 0; j < input.x.view().shape[1]; ++j) {
      const float want = std::nearbyint(read_element(input.x.view(), 0, j) / got.scales[0]);
      EXPECT_EQ(got.values.view().row<int8_t>(0)[j], std::min(want, 127.0f)) << j;
    }
    return got.scales[0];
  };
  EXPECT_EQ(scale_of(odd_integers(127 * 127 - 1), {1.0f, 0.5f}), 2.0f);
  EXPECT_EQ(scale_of(odd_integers(127 * 127), {1.0f, 0.5f}), 2.0f);  // the first of equals
  EXPECT_EQ(scale_of(odd_integers(127 * 127 + 1), {1.0f, 0.5f}), 1.0f);
  EXPECT_EQ(scale_of(odd_integers(127 * 127 + 1), {1.0f, 0.25f, 0.5f, 1.0f}), 1.0f);

  // What lies within half a step is lost either way: clipping the outlier would only add to it.
  QuantizeCase tiny{"tiny values", GuardedMatrix(DType::f32, 1, 5000)};
  for (int64_t j = 0; j < 5000; ++j) write_element(tiny.x.view(), 0, j, j % 2 == 0 ? 0.1f : -0.1f);
  write_element(tiny.x.view(), 0, 77, 127.0f);
  EXPECT_EQ(scale_of(std::move(tiny), ratios_down_from_one(20)), 1.0f);
}

}  // namespace octet::test
