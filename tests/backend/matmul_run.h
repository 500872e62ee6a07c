// The unquantized matmul, run by any kernel or backend and compared with ref.
//
// Tolerance: a sum of k products in f32 is within k roundings of the true one, each at most one
// unit in the last place (2^-23; BFMMLA rounds to odd, the others twice as well) of sum |a||b|;
// then one rounding to the output's type. A single product left out is a thousand times that.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "support.h"

namespace octet::test::matmul {

inline constexpr std::byte kGuard{0xa5};
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInf = std::numeric_limits<float>::infinity();

inline int64_t element_bytes(DType dtype) { return bits_of(dtype) / 8; }

// A matrix whose rows are `gap` elements further apart than they are long, in a block of exactly
// the size it needs (so that the address sanitizer sees a step beyond it).
struct Matrix {
  std::vector<std::byte> bytes;
  TensorView view;

  Matrix(DType dtype, int64_t rows, int64_t columns, int64_t gap)
      : bytes(static_cast<size_t>(std::max<int64_t>(0, (rows * (columns + gap) - gap)) *
                                  element_bytes(dtype)),
              kGuard),
        view(TensorView::rows(bytes.data(), dtype, rows, columns, columns + gap)) {}

  void set(int64_t at, float value) {
    if (view.dtype == DType::f32) {
      view.as<float>()[at] = value;
    } else {
      view.as<bf16_t>()[at] = from_f32<bf16_t>(value);
    }
  }
  float get(int64_t row, int64_t column) const {
    switch (view.dtype) {
      case DType::bf16: return to_f32(view.row<bf16_t>(row)[column]);
      case DType::f16: return to_f32(view.row<f16_t>(row)[column]);
      default: return view.row<float>(row)[column];
    }
  }
  int64_t elements() const {
    return static_cast<int64_t>(bytes.size()) / element_bytes(view.dtype);
  }

  // Normal numbers in the rows, NaN between them: whoever reads past a row's end will show it.
  void fill(std::mt19937& random) {
    std::normal_distribution<float> normal;
    for (int64_t at = 0; at < elements(); ++at) {
      set(at, at % view.row_stride() < view.shape[1] ? normal(random) : kNan);
    }
  }
  // Every step-th row, as they are or without their signs.
  Matrix sample(int64_t step, bool magnitudes) const {
    Matrix copy(view.dtype, (view.shape[0] + step - 1) / step, view.shape[1], 0);
    for (int64_t at = 0; at < copy.elements(); ++at) {
      const float value = get(at / view.shape[1] * step, at % view.shape[1]);
      copy.set(at, magnitudes ? std::fabs(value) : value);
    }
    return copy;
  }
  void expect_gaps_untouched() const {
    const int64_t width = view.shape[1] * element_bytes(view.dtype);
    const int64_t stride = view.row_stride() * element_bytes(view.dtype);
    for (int64_t at = 0; at < static_cast<int64_t>(bytes.size()); ++at) {
      if (at % stride >= width) {
        ASSERT_EQ(bytes[static_cast<size_t>(at)], kGuard) << "byte " << at;
      }
    }
  }
};

struct Dims {
  int64_t m, n, k;
};

// out := a times b transposed, all three in host memory.
using Multiply = std::function<void(Matrix& a, Matrix& b, Matrix& out)>;

// Through a backend's own memory; the gaps between the output's rows travel with it.
inline Multiply multiply_on(Backend& backend) {
  return [&backend](Matrix& a, Matrix& b, Matrix& out) {
    const OnDevice device_a(backend, a.bytes), device_b(backend, b.bytes);
    OnDevice device_out(backend, out.bytes);
    backend.matmul(device_a(a.view), device_b(b.view), device_out(out.view));
    device_out.download();
  };
}

// Compares every row_step-th row: ref is slow, above all under an emulator. `apart`: with gaps
// between rows.
inline void expect_right(const Multiply& multiply, const Dims& dims, DType inputs, DType output,
                         int64_t row_step = 1, bool apart = true) {
  const auto ref = make_ref_backend();
  SCOPED_TRACE(testing::Message() << "m=" << dims.m << " n=" << dims.n << " k=" << dims.k << " "
                                  << name_of(inputs) << " to " << name_of(output));
  std::mt19937 random(static_cast<uint32_t>(dims.m * 1000003 + dims.n * 1009 + dims.k));
  Matrix a(inputs, dims.m, dims.k, apart ? 3 : 0), b(inputs, dims.n, dims.k, apart ? 5 : 0);
  a.fill(random);
  b.fill(random);
  Matrix out(output, dims.m, dims.n, apart ? 7 : 0);
  const Matrix some_a = a.sample(row_step, false), absolute_a = a.sample(row_step, true);
  Matrix expected(DType::f32, some_a.view.shape[0], dims.n, 0);
  Matrix scale(DType::f32, some_a.view.shape[0], dims.n, 0);
  ref->matmul(some_a.view, b.view, expected.view);
  ref->matmul(absolute_a.view, b.sample(1, true).view, scale.view);

  multiply(a, b, out);
  const double out_ulp = output == DType::f32 ? 0x1p-24 : output == DType::f16 ? 0x1p-11 : 0x1p-8;
  for (int64_t i = 0; i < expected.view.shape[0]; ++i) {
    for (int64_t j = 0; j < dims.n; ++j) {
      const double sum_error = static_cast<double>(dims.k) * 0x1p-23 * scale.get(i, j);
      const double magnitude = std::fabs(expected.get(i, j)) + sum_error;
      const double subnormal_error = output == DType::f16 ? 0x1p-25 : 0;
      ASSERT_NEAR(out.get(i * row_step, j), expected.get(i, j),
                  sum_error + magnitude * (out_ulp + 0x1p-24) + subnormal_error)
          << "at [" << i * row_step << ", " << j << "]";
    }
  }
  out.expect_gaps_untouched();
}

// Shapes around the sizes of tiles and vectors, in every dimension.
inline std::vector<Dims> ragged_shapes() {
  std::vector<Dims> shapes;
  for (const int64_t m : {1, 2, 4, 5, 6, 8, 13, 14, 15, 16, 17, 31, 32, 33, 65}) {
    shapes.push_back({m, 19, 37});
  }
  for (const int64_t n : {1, 2, 7, 8, 11, 12, 13, 15, 16, 17, 31, 32, 33, 65, 130}) {
    shapes.push_back({9, n, 40});
  }
  for (const int64_t k : {1,  2,  3,  4,   5,   7,   8,   15,  16,  17,  31,   32,  33,
                          63, 64, 65, 255, 257, 383, 385, 511, 512, 513, 1025, 1600}) {
    shapes.push_back({17, 35, k});
  }
  std::mt19937 random(7);
  for (int count = 0; count < 20; ++count) {
    const auto up_to = [&](int64_t bound) { return 1 + static_cast<int64_t>(random() % bound); };
    shapes.push_back({up_to(80), up_to(80), up_to(300)});
  }
  return shapes;
}

inline void expect_nan_and_infinity_in_place(const Multiply& multiply, DType type) {
  std::mt19937 random(13);
  const int64_t m = 40, n = 50, k = 67;
  Matrix a(type, m, k, 0), b(type, n, k, 0);
  Matrix out(DType::f32, m, n, 0), expected(DType::f32, m, n, 0);
  a.fill(random);
  b.fill(random);
  a.set(3 * k + 66, kNan);
  a.set(20 * k, kInf);
  b.set(31 * k + 40, -kInf);
  b.set(49 * k + 66, kNan);
  multiply(a, b, out);
  make_ref_backend()->matmul(a.view, b.view, expected.view);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const float want = expected.get(i, j), got = out.get(i, j);
      ASSERT_EQ(std::isnan(got), std::isnan(want)) << i << " " << j;
      if (std::isinf(want) || std::isinf(got)) {
        ASSERT_EQ(got, want) << i << " " << j;
      }
    }
  }
}

inline void expect_zeros_without_k(const Multiply& multiply, DType type) {
  Matrix a(type, 5, 0, 1), b(type, 6, 0, 1), out(DType::f32, 5, 6, 0);
  multiply(a, b, out);
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t j = 0; j < 6; ++j) EXPECT_EQ(out.get(i, j), 0);
  }
  Matrix no_rows(type, 0, 4, 0), rows(type, 6, 4, 0);
  Matrix no_output_rows(DType::f32, 0, 6, 0), no_output_columns(DType::f32, 6, 0, 0);
  multiply(no_rows, rows, no_output_rows);
  multiply(rows, no_rows, no_output_columns);
}

}  // namespace octet::test::matmul
