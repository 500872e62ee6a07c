// What the checks of the ops between a model's linears share: operands in a backend's memory, and
// results compared with those of ref within stated errors.
//
// ref computes from the same values in F32, so that `want` is the truth but for half an ulp of F32,
// whatever type the backend was given. An error bound names what the backend may lose before its
// one rounding to the result's type, which is added here.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support.h"

namespace octet::test::model {

inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr DType kTypes[] = {DType::f32, DType::bf16};

// A handful of f32 operations and a sum in f32 whose parts are not all added one after another: 16
// roundings.
inline constexpr double kFewRoundings = 0x1p-20;

inline double half_ulp(DType type) { return type == DType::bf16 ? 0x1p-8 : 0x1p-24; }

inline TensorView as_vector(const TensorView& row) { return {row.data, row.dtype, {row.shape[1]}}; }

// A matrix and its copy in a backend's memory, with guard bytes around both.
class Operand {
 public:
  Operand(Backend& backend, GuardedMatrix& host) : host_(host), device_(backend, host) {}

  TensorView view() const { return device_(host_.view()); }
  TensorView vector() const { return as_vector(view()); }  // of one row
  // Brings a result back.
  void download() {
    device_.download();
    EXPECT_TRUE(host_.guards_intact());
  }

 private:
  GuardedMatrix& host_;
  OnDevice device_;
};

// Normally distributed around `mean`, in rows that are `gap` elements apart.
inline GuardedMatrix random_matrix(DType type, int64_t rows, int64_t columns, std::mt19937& random,
                                   float deviation = 1, float mean = 0, int64_t gap = 3) {
  GuardedMatrix matrix(type, rows, columns, columns + gap);
  std::normal_distribution<float> normal(mean, deviation);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) write_element(matrix.view(), i, j, normal(random));
  }
  return matrix;
}

inline GuardedMatrix random_vector(DType type, int64_t length, std::mt19937& random,
                                   float deviation = 1, float mean = 0) {
  return random_matrix(type, 1, length, random, deviation, mean, 0);
}

// f(element) of each, as F32 and without gaps.
template <class Function>
GuardedMatrix mapped(GuardedMatrix& matrix, Function f) {
  const TensorView from = matrix.view();
  GuardedMatrix result(DType::f32, from.shape[0], from.shape[1]);
  for (int64_t i = 0; i < from.shape[0]; ++i) {
    for (int64_t j = 0; j < from.shape[1]; ++j) {
      result.view().row<float>(i)[j] = f(read_element(from, i, j));
    }
  }
  return result;
}

inline GuardedMatrix widened(GuardedMatrix& matrix) {
  return mapped(matrix, [](float x) { return x; });
}
inline GuardedMatrix magnitudes(GuardedMatrix& matrix) {
  return mapped(matrix, [](float x) { return std::fabs(x); });
}

inline double largest_magnitude(const ConstTensorView& view, int64_t row) {
  double largest = 0;
  for (int64_t j = 0; j < view.shape[1]; ++j) {
    largest = std::fmax(largest, std::fabs(read_element(view, row, j)));
  }
  return largest;
}

// error(i, j): what may be lost before the rounding to the type of `got`.
template <class Error>
void expect_close(const ConstTensorView& got, const ConstTensorView& want, Error error) {
  for (int64_t i = 0; i < want.shape[0]; ++i) {
    for (int64_t j = 0; j < want.shape[1]; ++j) {
      const double x = read_element(got, i, j), y = read_element(want, i, j);
      if (std::isnan(y)) {
        ASSERT_TRUE(std::isnan(x)) << "at [" << i << ", " << j << "]: " << x << ", expected NaN";
      } else if (std::isinf(y)) {
        ASSERT_EQ(x, y) << "at [" << i << ", " << j << "]";
      } else {
        const double lost = error(i, j);
        // ref's own rounding to F32 counts as well.
        const double rounding =
            half_ulp(got.dtype) * (std::fabs(y) + lost) + 0x1p-24 * std::fabs(y);
        ASSERT_NEAR(x, y, lost + rounding + 1e-44) << "at [" << i << ", " << j << "]";
      }
    }
  }
}

}  // namespace octet::test::model
