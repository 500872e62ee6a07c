// The element by element ops, embed, sinusoids and the bias of matmul on any backend, compared with
// ref. Where nothing but single IEEE operations is asked for, the bits are equal.
#pragma once

#include "backend/model_run.h"

namespace octet::test::model {

// Values from all over the range of f32, and those that are none.
inline GuardedMatrix values_of_all_sizes(DType type, int64_t rows, int64_t columns,
                                         std::mt19937& random) {
  GuardedMatrix matrix = random_matrix(type, rows, columns, random, 4);
  const float specials[] = {0.0f,  -0.0f,  kNaN,    kInf,   -kInf, 1e4f,  -1e4f,
                            87.0f, -87.0f, -200.0f, 1e-30f, 3e38f, -3e38f};
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = i % 3; j < columns; j += 7) {
      write_element(matrix.view(), i, j, specials[random() % std::size(specials)]);
    }
  }
  return matrix;
}

inline constexpr std::pair<int64_t, int64_t> kRowShapes[] = {{1, 1},  {3, 7},  {2, 15},  {2, 16},
                                                             {2, 17}, {5, 33}, {40, 64}, {3, 1031}};

inline void expect_swiglu_right(Backend& backend) {
  std::mt19937 random(11);
  for (const DType type : kTypes) {
    for (const auto& [rows, columns] : kRowShapes) {
      SCOPED_TRACE(fmt::format("{} [{}, {}]", name_of(type), rows, columns));
      GuardedMatrix gate = values_of_all_sizes(type, rows, columns, random);
      GuardedMatrix up = random_matrix(type, rows, columns, random);
      GuardedMatrix got(type, rows, columns, columns + 2), want(type, rows, columns);
      make_ref_backend()->swiglu(gate.view(), up.view(), want.view());
      const Operand device_gate(backend, gate), device_up(backend, up);
      Operand out(backend, got);
      backend.swiglu(device_gate.view(), device_up.view(), out.view());
      out.download();
      EXPECT_TRUE(same_bits(got.view(), want.view()));
    }
  }
}

// The sum 1 + erf loses what erf loses of 1: a few roundings of x itself.
inline void expect_activate_right(Backend& backend) {
  std::mt19937 random(12);
  for (const DType type : kTypes) {
    for (const auto& [rows, columns] : kRowShapes) {
      for (const Activation how : {Activation::silu, Activation::gelu}) {
        SCOPED_TRACE(fmt::format("{} {} [{}, {}]", how == Activation::silu ? "silu" : "gelu",
                                 name_of(type), rows, columns));
        GuardedMatrix x = how == Activation::silu ? values_of_all_sizes(type, rows, columns, random)
                                                  : random_matrix(type, rows, columns, random, 3);
        if (how == Activation::gelu) write_element(x.view(), rows - 1, columns / 2, kNaN);
        GuardedMatrix got(type, rows, columns, columns + 2);
        const Operand device_x(backend, x);
        Operand out(backend, got);
        backend.activate(device_x.view(), how, out.view());
        out.download();
        if (how == Activation::silu) {
          GuardedMatrix want(type, rows, columns);
          make_ref_backend()->activate(x.view(), how, want.view());
          EXPECT_TRUE(same_bits(got.view(), want.view()));
        } else {
          GuardedMatrix want(DType::f32, rows, columns), wide = widened(x);
          make_ref_backend()->activate(wide.view(), how, want.view());
          expect_close(got.view(), want.view(), [&](int64_t i, int64_t j) {
            return 0x1p-21 * std::fabs(read_element(x.view(), i, j));
          });
        }
      }
    }
  }
}

// One row of a matrix, as a matrix.
inline TensorView row_view(const TensorView& matrix, int64_t row) {
  TensorView one = matrix;
  one.data += row * matrix.row_stride() * (bits_of(matrix.dtype) / 8);
  one.shape[0] = 1;
  return one;
}

inline void expect_add_right(Backend& backend) {
  std::mt19937 random(13);
  for (const DType type : kTypes) {
    for (const auto& [rows, columns] : kRowShapes) {
      SCOPED_TRACE(fmt::format("{} [{}, {}]", name_of(type), rows, columns));
      GuardedMatrix got = values_of_all_sizes(type, rows, columns, random), want = got;
      GuardedMatrix x = random_matrix(type, rows, columns, random, 100);
      make_ref_backend()->add(want.view(), x.view());
      const Operand device_x(backend, x);
      Operand h(backend, got);
      backend.add(h.view(), device_x.view());
      h.download();
      EXPECT_TRUE(same_bits(got.view(), want.view()));
    }
  }
}

// As adding a matrix whose rows are all the same one.
inline void expect_add_row_right(Backend& backend) {
  std::mt19937 random(15);
  for (const DType type : kTypes) {
    for (const auto& [rows, columns] : kRowShapes) {
      SCOPED_TRACE(fmt::format("{} [{}, {}]", name_of(type), rows, columns));
      GuardedMatrix got = values_of_all_sizes(type, rows, columns, random), want = got;
      GuardedMatrix row = random_matrix(type, 1, columns, random, 100);
      const auto ref = make_ref_backend();
      for (int64_t i = 0; i < rows; ++i) ref->add(row_view(want.view(), i), row.view());
      const Operand device_row(backend, row);
      Operand h(backend, got);
      backend.add_row(h.view(), ConstTensorView(device_row.view().data, type, {columns}));
      h.download();
      EXPECT_TRUE(same_bits(got.view(), want.view()));
    }
  }
}

inline void expect_embed_right(Backend& backend) {
  std::mt19937 random(14);
  for (const DType type : kTypes) {
    for (const int64_t columns : {1, 7, 64, 1031}) {
      SCOPED_TRACE(fmt::format("{} {} columns", name_of(type), columns));
      GuardedMatrix table = values_of_all_sizes(type, 50, columns, random);
      const std::vector<int32_t> rows = {49, 0, 7, 7, 7, 31, 2, 48, 1};
      const auto count = static_cast<int64_t>(rows.size());
      GuardedMatrix got(type, count, columns, columns + 4), want(type, count, columns);
      make_ref_backend()->embed(table.view(), rows, want.view());
      const Operand device_table(backend, table);
      Operand out(backend, got);
      backend.embed(device_table.view(), rows, out.view());
      out.download();
      EXPECT_TRUE(same_bits(got.view(), want.view()));
    }
  }
}

// The angle is the rounded product on every backend; a sine is right to two units in the last place
// of 1, also of angles of thousands.
inline void expect_sinusoids_right(Backend& backend) {
  std::mt19937 random(15);
  for (const DType type : kTypes) {
    for (const int64_t half : {1, 5, 128, 130}) {
      SCOPED_TRACE(fmt::format("{} {} frequencies", name_of(type), half));
      GuardedMatrix frequencies(DType::f32, 1, half);
      for (int64_t j = 0; j < half; ++j) {
        const double power = static_cast<double>(j) / static_cast<double>(half);
        write_element(frequencies.view(), 0, j, static_cast<float>(std::pow(1e-4, power)));
      }
      const std::vector<float> times = {0.0f, 1.0f, -0.37f, 500.3f, 9999.0f};
      GuardedMatrix got(type, 5, 2 * half, 2 * half + 3), want(DType::f32, 5, 2 * half);
      make_ref_backend()->sinusoids(times, as_vector(frequencies.view()), want.view());
      const Operand device_frequencies(backend, frequencies);
      Operand out(backend, got);
      backend.sinusoids(times, device_frequencies.vector(), out.view());
      out.download();
      expect_close(got.view(), want.view(), [](int64_t, int64_t) { return 0x1p-22; });
    }
  }
}

// As in matmul_run.h: k roundings of the sum of magnitudes, then one of the whole with its bias.
inline void expect_matmul_bias_right(Backend& backend) {
  struct Dims {
    int64_t m, n, k;
  };
  std::mt19937 random(16);
  const auto ref = make_ref_backend();
  for (const DType type : kTypes) {
    for (const DType out_type : {DType::f32, DType::bf16, DType::f16}) {
      for (const Dims& dims : {Dims{1, 1, 1}, Dims{5, 7, 3}, Dims{17, 31, 40}, Dims{33, 64, 64},
                               Dims{70, 65, 300}, Dims{3, 130, 0}, Dims{600, 33, 20}}) {
        SCOPED_TRACE(fmt::format("{} to {}: m={} n={} k={}", name_of(type), name_of(out_type),
                                 dims.m, dims.n, dims.k));
        GuardedMatrix a = random_matrix(type, dims.m, dims.k, random);
        GuardedMatrix b = random_matrix(type, dims.n, dims.k, random);
        GuardedMatrix bias = random_vector(out_type, dims.n, random, 10);
        GuardedMatrix got(out_type, dims.m, dims.n, dims.n + 3);
        GuardedMatrix want(DType::f32, dims.m, dims.n), scale(DType::f32, dims.m, dims.n);
        GuardedMatrix wide_bias = widened(bias), absolute_a = magnitudes(a),
                      absolute_b = magnitudes(b), absolute_bias = magnitudes(bias);
        ref->matmul(a.view(), b.view(), want.view(), as_vector(wide_bias.view()));
        ref->matmul(absolute_a.view(), absolute_b.view(), scale.view(),
                    as_vector(absolute_bias.view()));
        const Operand device_a(backend, a), device_b(backend, b), device_bias(backend, bias);
        Operand out(backend, got);
        backend.matmul(device_a.view(), device_b.view(), out.view(), device_bias.vector());
        out.download();
        const double roundings = 0x1p-23 * static_cast<double>(dims.k + 1);
        expect_close(got.view(), want.view(), [&](int64_t i, int64_t j) {
          const double narrow = out_type == DType::f16 ? 0x1p-11 : 0;
          return (roundings + narrow) * read_element(scale.view(), i, j);
        });
      }
    }
  }
}

}  // namespace octet::test::model
