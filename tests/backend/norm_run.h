// norm, norm_quantize, rotate_heads and add_gated on any backend, compared with ref.
//
// Error of a norm before its rounding: a few roundings of the result and, since a mean is
// subtracted, of the row's largest element as the norm scales it.
#pragma once

#include <algorithm>

#include "backend/model_run.h"

namespace octet::test::model {

struct NormCase {
  RowNorm::Kind kind = RowNorm::Kind::rms;
  DType type = DType::f32;
  int64_t rows = 1, channels = 1;
  bool weight = false, scale = false;
  float eps = 1e-6f;

  std::string to_string() const {
    return fmt::format("{} {} [{}, {}]{}{} eps {}", kind == RowNorm::Kind::rms ? "rms" : "layer",
                       name_of(type), rows, channels, weight ? " weight" : "",
                       scale ? " scale" : "", eps);
  }
};

// A case's operands, and in F32 what ref makes of them.
struct NormOperands {
  GuardedMatrix x, weight, scale;
  GuardedMatrix wide_x, wide_scale;
  RowNorm how;  // ref's

  NormOperands(const NormCase& c, GuardedMatrix matrix, std::mt19937& random)
      : x(std::move(matrix)),
        weight(random_vector(DType::f32, c.channels, random, 0.3f, 1)),
        scale(random_vector(c.type, c.channels, random, 0.5f)),
        wide_x(widened(x)),
        wide_scale(widened(scale)),
        how{.kind = c.kind, .eps = c.eps} {
    if (c.weight) how.weight = as_vector(weight.view());
    if (c.scale) how.scale = as_vector(wide_scale.view());
  }

  GuardedMatrix reference() {
    GuardedMatrix want(DType::f32, wide_x.view().shape[0], wide_x.view().shape[1]);
    make_ref_backend()->norm(wide_x.view(), how, want.view());
    return want;
  }

  // A few roundings of the largest element of row i, before the gain of a channel.
  double row_error(int64_t i) {
    const TensorView view = wide_x.view();
    const float* row = view.row<float>(i);
    const auto count = static_cast<double>(view.shape[1]);
    double mean = 0, squares = 0;
    for (int64_t j = 0; j < view.shape[1]; ++j) mean += row[j] / count;
    if (how.kind == RowNorm::Kind::rms) mean = 0;
    for (int64_t j = 0; j < view.shape[1]; ++j) {
      squares += (row[j] - mean) * (row[j] - mean) / count;
    }
    return kFewRoundings * largest_magnitude(view, i) / std::sqrt(squares + how.eps);
  }
  double gain(int64_t j) const {
    const double weight_here = how.weight.data == nullptr ? 1 : how.weight.as<float>()[j];
    const double scale_here = how.scale.data == nullptr ? 0 : how.scale.as<float>()[j];
    return std::fabs(weight_here * (1 + scale_here));
  }
};

// The same norm with operands of a backend.
class DeviceNorm {
 public:
  DeviceNorm(Backend& backend, NormOperands& host)
      : x_(backend, host.x), weight_(backend, host.weight), scale_(backend, host.scale) {
    how_ = host.how;
    if (how_.weight.data != nullptr) how_.weight = weight_.vector();
    if (how_.scale.data != nullptr) how_.scale = scale_.vector();
  }
  TensorView x() const { return x_.view(); }
  const RowNorm& how() const { return how_; }

 private:
  Operand x_, weight_, scale_;
  RowNorm how_;
};

inline void expect_norm_close(const ConstTensorView& got, const ConstTensorView& want,
                              NormOperands& operands) {
  std::vector<double> of_row;
  for (int64_t i = 0; i < want.shape[0]; ++i) of_row.push_back(operands.row_error(i));
  expect_close(got, want, [&](int64_t i, int64_t j) {
    return of_row[static_cast<size_t>(i)] * operands.gain(j) +
           kFewRoundings * std::fabs(read_element(want, i, j));
  });
}

inline void expect_norm_right(Backend& backend, const NormCase& c, GuardedMatrix x,
                              std::mt19937& random) {
  SCOPED_TRACE(c.to_string());
  NormOperands operands(c, std::move(x), random);
  GuardedMatrix got(c.type, c.rows, c.channels, c.channels + 5), want = operands.reference();
  const DeviceNorm device(backend, operands);
  Operand out(backend, got);
  backend.norm(device.x(), device.how(), out.view());
  out.download();
  expect_norm_close(got.view(), want.view(), operands);
}

inline void expect_norm_right(Backend& backend) {
  std::mt19937 random(1);
  for (const DType type : kTypes) {
    for (const auto kind : {RowNorm::Kind::rms, RowNorm::Kind::layer}) {
      for (const int64_t channels : {1, 2, 7, 16, 33, 64, 100, 257, 4608}) {
        const NormCase c{kind, type, 5, channels, channels != 33, channels % 2 == 0};
        expect_norm_right(backend, c, random_matrix(type, 5, channels, random, 3, 0.5f), random);
      }
      const NormCase many{kind, type, 200, 24, false, true};
      expect_norm_right(backend, many, random_matrix(type, 200, 24, random), random);
      const NormCase wide{kind, type, 1, 53248, true, false};
      expect_norm_right(backend, wide, random_matrix(type, 1, 53248, random, 1, 0.1f), random);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// Rows so small that eps decides, zeros, one large element, a mean far from zero, large values.
inline void expect_norm_of_hard_rows_right(Backend& backend) {
  std::mt19937 random(2);
  const int64_t channels = 300;
  for (const DType type : kTypes) {
    for (const auto kind : {RowNorm::Kind::rms, RowNorm::Kind::layer}) {
      for (const float eps : {1e-6f, 1e-5f, 0.5f}) {
        GuardedMatrix x = random_matrix(type, 6, channels, random);
        for (int64_t j = 0; j < channels; ++j) {
          const float value = read_element(x.view(), 0, j);
          write_element(x.view(), 0, j, value * 1e-3f);
          write_element(x.view(), 1, j, 0);
          write_element(x.view(), 2, j, j == 77 ? 3e4f : value);
          write_element(x.view(), 3, j, 1000 + value * 16);
          write_element(x.view(), 4, j, value * 1e4f);
          write_element(x.view(), 5, j, value * 1e-12f);
        }
        const NormCase c{kind, type, 6, channels, true, true, eps};
        expect_norm_right(backend, c, std::move(x), random);
      }
    }
  }
}

inline void expect_norm_keeps_nan_in_its_row(Backend& backend) {
  std::mt19937 random(3);
  for (const DType type : kTypes) {
    for (const auto kind : {RowNorm::Kind::rms, RowNorm::Kind::layer}) {
      GuardedMatrix x = random_matrix(type, 9, 70, random);
      write_element(x.view(), 3, 69, kNaN);
      write_element(x.view(), 8, 0, kNaN);
      const NormCase c{kind, type, 9, 70, true, true};
      SCOPED_TRACE(c.to_string());
      NormOperands operands(c, std::move(x), random);
      GuardedMatrix got(type, 9, 70, 75), h = random_matrix(type, 9, 70, random);
      GuardedMatrix gate = random_vector(type, 70, random);
      const DeviceNorm device(backend, operands);
      Operand out(backend, got), sum(backend, h);
      const Operand device_gate(backend, gate);
      backend.norm(device.x(), device.how(), out.view());
      backend.add_gated(sum.view(), device.x(), device.how(), device_gate.vector());
      out.download();
      sum.download();
      for (int64_t i = 0; i < 9; ++i) {
        for (int64_t j = 0; j < 70; ++j) {
          ASSERT_EQ(std::isnan(read_element(got.view(), i, j)), i == 3 || i == 8) << i << " " << j;
          ASSERT_EQ(std::isnan(read_element(h.view(), i, j)), i == 3 || i == 8) << i << " " << j;
        }
      }
    }
  }
}

// The codes are those of quantize_rows() on the F32 norm of the same backend, bit for bit; from a
// bf16 matrix they are within one of ref's, since a norm in f32 is not exactly its.
inline void expect_norm_quantize_right(Backend& backend) {
  std::mt19937 random(4);
  const auto ref = make_ref_backend();
  for (const DType type : kTypes) {
    for (const auto kind : {Transform::none, Transform::smooth, Transform::rotate}) {
      for (const int64_t channels : {64, 768, 4608}) {
        const NormCase c{RowNorm::Kind::rms, type, 11, channels, true, channels != 768};
        SCOPED_TRACE(c.to_string());
        NormOperands operands(c, random_matrix(type, 11, channels, random), random);
        write_element(operands.x.view(), 4, 5, 200);
        write_element(operands.wide_x.view(), 4, 5, 200);
        if (type == DType::f32) write_element(operands.x.view(), 7, 63, kNaN);
        GuardedMatrix smooth = random_vector(DType::f32, channels, random, 0.2f, 1);
        const DeviceNorm device(backend, operands);
        const Operand device_smooth(backend, smooth);
        const ActivationTransform transform{kind, device_smooth.vector(), 64};
        const ActivationTransform host_transform{kind, as_vector(smooth.view()), 64};

        GuardedMatrix got(DType::i8, 11, channels, channels + 3);
        std::vector<float> got_scales(11, -1);
        Operand codes(backend, got);
        OnDevice scales(backend, got_scales);
        backend.norm_quantize(device.x(), device.how(), transform,
                              {codes.view(), scales(vector_view(got_scales))});
        codes.download();
        scales.download();

        GuardedMatrix want(DType::i8, 11, channels);
        std::vector<float> want_scales(11);
        GuardedMatrix normed = operands.reference();
        if (type == DType::f32) {  // by way of the same backend
          Operand out(backend, normed), want_codes(backend, want);
          OnDevice device_scales(backend, want_scales);
          backend.norm(device.x(), device.how(), out.view());
          backend.quantize_rows(out.view(), transform,
                                {want_codes.view(), device_scales(vector_view(want_scales))});
          want_codes.download();
          device_scales.download();
          EXPECT_TRUE(same_bits(got.view(), want.view()));
          for (size_t i = 0; i < 11; ++i) {
            if (i == 7) {
              EXPECT_TRUE(std::isnan(got_scales[i]));
            } else {
              EXPECT_EQ(got_scales[i], want_scales[i]);
            }
          }
          continue;
        }
        ref->quantize_rows(normed.view(), host_transform, {want.view(), vector_view(want_scales)});
        for (int64_t i = 0; i < 11; ++i) {
          const auto scale = static_cast<double>(want_scales[static_cast<size_t>(i)]);
          EXPECT_NEAR(got_scales[static_cast<size_t>(i)], scale, 2 * kFewRoundings * scale);
          for (int64_t j = 0; j < channels; ++j) {
            ASSERT_NEAR(got.view().row<int8_t>(i)[j], want.view().row<int8_t>(i)[j], 1);
          }
        }
      }
    }
  }
}

// The rotation keeps a pair's length, so its error is relative to both of its results.
inline void expect_rotate_heads_right(Backend& backend) {
  struct Heads {
    int64_t rows, heads, head_dim;
  };
  std::mt19937 random(5);
  const auto ref = make_ref_backend();
  for (const DType type : kTypes) {
    for (const Heads& c : {Heads{1, 1, 2}, Heads{5, 3, 8}, Heads{7, 2, 16}, Heads{33, 4, 64},
                           Heads{9, 5, 72}, Heads{6, 3, 128}, Heads{3, 2, 256}, Heads{2, 1, 512}}) {
      SCOPED_TRACE(
          fmt::format("{} {} rows, {} heads of {}", name_of(type), c.rows, c.heads, c.head_dim));
      GuardedMatrix x = random_matrix(type, c.rows, c.heads * c.head_dim, random, 2);
      for (int64_t j = 0; j < c.head_dim; ++j) {  // eps decides
        write_element(x.view(), 0, j, read_element(x.view(), 0, j) * 1e-3f);
      }
      const bool with_nan = c.rows > 5;
      if (with_nan) write_element(x.view(), 5, c.head_dim + 1, kNaN);
      GuardedMatrix want = widened(x);
      GuardedMatrix weight = random_vector(DType::f32, c.head_dim, random, 0.3f, 1);
      GuardedMatrix cos = random_matrix(DType::f32, c.rows, c.head_dim / 2, random, 3, 0, 0);
      GuardedMatrix sin = cos;
      for (int64_t i = 0; i < c.rows; ++i) {
        for (int64_t j = 0; j < c.head_dim / 2; ++j) {
          const float angle = read_element(cos.view(), i, j);
          write_element(cos.view(), i, j, std::cos(angle));
          write_element(sin.view(), i, j, std::sin(angle));
        }
      }
      HeadRotation how{c.heads, 1e-5f, as_vector(weight.view()), cos.view(), sin.view()};
      ref->rotate_heads(want.view(), how);

      Operand device(backend, x);
      const Operand device_weight(backend, weight), device_cos(backend, cos),
          device_sin(backend, sin);
      how.weight = device_weight.vector();
      how.cos = device_cos.view();
      how.sin = device_sin.view();
      backend.rotate_heads(device.view(), how);
      device.download();
      const int64_t half = c.head_dim / 2;
      expect_close(x.view(), want.view(), [&](int64_t i, int64_t j) {
        const int64_t partner = j % c.head_dim < half ? j + half : j - half;
        return kFewRoundings * (std::fabs(read_element(want.view(), i, j)) +
                                std::fabs(read_element(want.view(), i, partner)));
      });
      for (int64_t j = 0; with_nan && j < c.heads * c.head_dim; ++j) {
        ASSERT_EQ(std::isnan(read_element(x.view(), 5, j)), j / c.head_dim == 1) << j;
      }
    }
  }
}

inline void expect_add_gated_right(Backend& backend) {
  std::mt19937 random(6);
  const auto ref = make_ref_backend();
  for (const DType type : kTypes) {
    for (const int64_t channels : {1, 5, 16, 100, 1031, 4608}) {
      for (const int64_t rows : {1, 9}) {
        const NormCase c{RowNorm::Kind::rms, type, rows, channels, true, rows == 9};
        SCOPED_TRACE(c.to_string());
        NormOperands operands(c, random_matrix(type, rows, channels, random), random);
        GuardedMatrix h = random_matrix(type, rows, channels, random, 5);
        GuardedMatrix gate = random_vector(type, channels, random, 2);
        GuardedMatrix want = widened(h), wide_gate = widened(gate);
        ref->add_gated(want.view(), operands.wide_x.view(), operands.how,
                       as_vector(wide_gate.view()));

        const DeviceNorm device(backend, operands);
        const Operand device_gate(backend, gate);
        Operand sum(backend, h);
        backend.add_gated(sum.view(), device.x(), device.how(), device_gate.vector());
        sum.download();
        // |tanh| is at most 1: the term is no larger than the norm.
        GuardedMatrix normed = operands.reference();
        expect_close(h.view(), want.view(), [&](int64_t i, int64_t j) {
          return kFewRoundings * (std::fabs(read_element(normed.view(), i, j)) +
                                  std::fabs(read_element(want.view(), i, j)));
        });
      }
    }
  }
}

}  // namespace octet::test::model
