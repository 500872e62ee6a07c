// The ops between a model's linears on the GPU: the checks of every backend, and what is its own:
// kernels for aligned rows, images of several chunks, rows gigabytes apart.
#include "backend/model_ops_run.h"
#include "cuda/cuda_support.h"

namespace octet::test::model {
namespace {

class CudaModelOps : public OnGpu, public testing::WithParamInterface<size_t> {};

TEST_P(CudaModelOps, EqualRef) {
  const auto backend = make_gpu();
  kModelOpChecks[GetParam()].run(*backend);
}

INSTANTIATE_TEST_SUITE_P(All, CudaModelOps, testing::Range<size_t>(0, std::size(kModelOpChecks)),
                         [](const auto& test) { return kModelOpChecks[test.param].name; });

// Rows that start at multiples of 16 bytes go to other kernels than those of the shared checks.
using CudaAlignedOps = OnGpu;

constexpr int64_t kGap = 16;

GuardedMatrix aligned_matrix(DType type, int64_t rows, int64_t columns, std::mt19937& random,
                             float deviation = 1, float mean = 0) {
  return random_matrix(type, rows, columns, random, deviation, mean, kGap);
}

struct NormShape {
  int64_t rows, channels;
};
// One row per block and several, teams that do and do not fill warps, the largest that fit.
constexpr NormShape kNormShapes[] = {{1, 16},    {7, 64},     {1000, 256}, {700, 1040}, {9, 2304},
                                     {33, 4096}, {300, 4608}, {5, 12288},  {3, 16384},  {2, 16640}};

TEST_F(CudaAlignedOps, NormEqualsRef) {
  const auto backend = make_gpu();
  std::mt19937 random(41);
  for (const DType type : kTypes) {
    for (const auto kind : {RowNorm::Kind::rms, RowNorm::Kind::layer}) {
      for (const auto& [rows, channels] : kNormShapes) {
        const bool plain = channels == 2304;
        const NormCase c{kind, type, rows, channels, !plain, !plain};
        SCOPED_TRACE(c.to_string());
        NormOperands operands(c, aligned_matrix(type, rows, channels, random, 3, 0.5f), random);
        GuardedMatrix got(type, rows, channels, channels + kGap), want = operands.reference();
        const DeviceNorm device(*backend, operands);
        Operand out(*backend, got);
        backend->norm(device.x(), device.how(), out.view());
        out.download();
        expect_norm_close(got.view(), want.view(), operands);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(CudaAlignedOps, AddGatedEqualsRef) {
  const auto backend = make_gpu();
  std::mt19937 random(42);
  for (const DType type : kTypes) {
    for (const auto kind : {RowNorm::Kind::rms, RowNorm::Kind::layer}) {
      for (const auto& [rows, channels] : kNormShapes) {
        const NormCase c{kind, type, rows, channels, true, rows == 9};
        SCOPED_TRACE(c.to_string());
        NormOperands operands(c, aligned_matrix(type, rows, channels, random), random);
        GuardedMatrix h = aligned_matrix(type, rows, channels, random, 5);
        GuardedMatrix gate = random_vector(type, channels, random, 2);
        GuardedMatrix want = widened(h), wide_gate = widened(gate);
        make_ref_backend()->add_gated(want.view(), operands.wide_x.view(), operands.how,
                                      as_vector(wide_gate.view()));
        const DeviceNorm device(*backend, operands);
        const Operand device_gate(*backend, gate);
        Operand sum(*backend, h);
        backend->add_gated(sum.view(), device.x(), device.how(), device_gate.vector());
        sum.download();
        // |tanh| is at most 1: the term is no larger than the norm.
        GuardedMatrix normed = operands.reference();
        std::vector<double> of_row;
        for (int64_t i = 0; i < rows; ++i) of_row.push_back(operands.row_error(i));
        expect_close(h.view(), want.view(), [&](int64_t i, int64_t j) {
          return of_row[static_cast<size_t>(i)] * operands.gain(j) +
                 kFewRoundings * (std::fabs(read_element(normed.view(), i, j)) +
                                  std::fabs(read_element(want.view(), i, j)));
        });
        if (HasFatalFailure()) return;
      }
    }
  }
}

struct Quantized {
  GuardedMatrix codes;
  std::vector<float> scales;
};

template <class Run>
Quantized quantized_on(Backend& backend, int64_t rows, int64_t channels, Run run) {
  Quantized result{GuardedMatrix(DType::i8, rows, channels, channels + kGap),
                   std::vector<float>(static_cast<size_t>(rows), -1.0f)};
  Operand codes(backend, result.codes);
  OnDevice scales(backend, result.scales);
  run(QTensor{codes.view(), scales(vector_view(result.scales))});
  codes.download();
  scales.download();
  return result;
}

// F32 rows get the bits of quantize_rows() after norm(); BF16 rows are within one of ref's codes.
TEST_F(CudaAlignedOps, NormQuantizeEqualsItsParts) {
  const auto backend = make_gpu();
  const auto ref = make_ref_backend();
  std::mt19937 random(43);
  for (const DType type : kTypes) {
    for (const auto kind : {RowNorm::Kind::rms, RowNorm::Kind::layer}) {
      for (const auto& [rows, channels] : kNormShapes) {
        const NormCase c{kind, type, rows, channels, true, true};
        NormOperands operands(c, aligned_matrix(type, rows, channels, random, 2, 0.3f), random);
        GuardedMatrix smooth = random_vector(DType::f32, channels, random, 0.2f, 1);
        GuardedMatrix normed = operands.reference();
        const DeviceNorm device(*backend, operands);
        const Operand device_smooth(*backend, smooth);
        GuardedMatrix device_normed(DType::f32, rows, channels, channels + kGap);
        const Operand own_norm(*backend, device_normed);
        if (type == DType::f32) backend->norm(device.x(), device.how(), own_norm.view());
        // -1: smooth, 0: none, else the group of a rotation.
        for (const int64_t way : {-1, 0, 4, 16, 64, 256, 1024}) {
          if (way > 0 && channels % way != 0) continue;
          SCOPED_TRACE(fmt::format("{} way {}", c.to_string(), way));
          const Transform transform = way < 0    ? Transform::smooth
                                      : way == 0 ? Transform::none
                                                 : Transform::rotate;
          const ActivationTransform how{transform, device_smooth.vector(),
                                        std::max<int64_t>(way, 0)};
          const Quantized got = quantized_on(*backend, rows, channels, [&](const QTensor& out) {
            backend->norm_quantize(device.x(), device.how(), how, out);
          });
          GuardedMatrix codes = got.codes;
          if (type == DType::f32) {
            Quantized want = quantized_on(*backend, rows, channels, [&](const QTensor& out) {
              backend->quantize_rows(own_norm.view(), how, out);
            });
            ASSERT_TRUE(same_bits(codes.view(), want.codes.view()));
            ASSERT_EQ(got.scales, want.scales);
            continue;
          }
          GuardedMatrix want(DType::i8, rows, channels);
          std::vector<float> want_scales(static_cast<size_t>(rows));
          ref->quantize_rows(normed.view(), {transform, as_vector(smooth.view()), how.group},
                             {want.view(), vector_view(want_scales)});
          for (int64_t i = 0; i < rows; ++i) {
            const double scale = want_scales[static_cast<size_t>(i)];
            ASSERT_NEAR(got.scales[static_cast<size_t>(i)], scale, 2 * kFewRoundings * scale) << i;
            for (int64_t j = 0; j < channels; ++j) {
              ASSERT_NEAR(codes.view().row<int8_t>(i)[j], want.view().row<int8_t>(i)[j], 1)
                  << i << " " << j;
            }
          }
        }
      }
    }
  }
}

// The middle third of rows that hold q, k and v.
TEST_F(CudaAlignedOps, RotateHeadsEqualsRef) {
  struct Heads {
    int64_t rows, heads, head_dim;
  };
  const auto backend = make_gpu();
  std::mt19937 random(44);
  for (const DType type : kTypes) {
    for (const Heads& c :
         {Heads{3, 5, 8}, Heads{40, 18, 16}, Heads{7, 3, 72}, Heads{9, 8, 128}, Heads{50, 32, 128},
          Heads{60, 18, 256}, Heads{5, 7, 512}, Heads{4, 2, 520}}) {
      SCOPED_TRACE(
          fmt::format("{} {} rows, {} heads of {}", name_of(type), c.rows, c.heads, c.head_dim));
      const int64_t channels = c.heads * c.head_dim, half = c.head_dim / 2;
      GuardedMatrix all = random_matrix(type, c.rows, 3 * channels, random, 2, 0, 8);
      const auto middle = [&](TensorView view) {
        view.data += channels * bits_of(view.dtype) / 8;
        view.shape[1] = channels;
        return view;
      };
      GuardedMatrix want = widened(all);
      GuardedMatrix weight = random_vector(DType::f32, c.head_dim, random, 0.3f, 1);
      GuardedMatrix cos = random_matrix(DType::f32, c.rows, half, random, 1, 0, 0);
      GuardedMatrix sin = random_matrix(DType::f32, c.rows, half, random, 1, 0, 0);
      HeadRotation how{c.heads, 1e-5f, as_vector(weight.view()), cos.view(), sin.view()};
      make_ref_backend()->rotate_heads(middle(want.view()), how);
      Operand device(*backend, all);
      const Operand device_weight(*backend, weight), device_cos(*backend, cos),
          device_sin(*backend, sin);
      how.weight = device_weight.vector();
      how.cos = device_cos.view();
      how.sin = device_sin.view();
      backend->rotate_heads(middle(device.view()), how);
      device.download();
      // Of a normed pair with its weight (2 sqrt(head_dim) at most), times cosine and sine (4).
      const double pair = kFewRoundings * 16 * std::sqrt(static_cast<double>(c.head_dim));
      expect_close(all.view(), want.view(), [&](int64_t, int64_t j) {
        return j / channels == 1 ? pair : 0;  // outside nothing changes
      });
      if (HasFatalFailure()) return;
    }
  }
}

// Ops whose bits are given, with rows that end between vectors and without gaps.
TEST_F(CudaAlignedOps, ElementOpsEqualRef) {
  const auto backend = make_gpu();
  const auto ref = make_ref_backend();
  std::mt19937 random(45);
  for (const DType type : kTypes) {
    for (const auto& [rows, columns, gap] : {std::tuple<int64_t, int64_t, int64_t>{1, 8, 0},
                                             {3, 77, 3},
                                             {77, 4608, 8},
                                             {600, 1000, 0},
                                             {9, 333, 0}}) {
      SCOPED_TRACE(fmt::format("{} [{}, {}] gap {}", name_of(type), rows, columns, gap));
      GuardedMatrix a = random_matrix(type, rows, columns, random, 4, 0, gap);
      GuardedMatrix b = random_matrix(type, rows, columns, random, 4, 0, gap);
      GuardedMatrix got(type, rows, columns, columns + gap), want(type, rows, columns);
      const Operand device_b(*backend, b);
      Operand device_a(*backend, a), out(*backend, got);
      ref->swiglu(a.view(), b.view(), want.view());
      backend->swiglu(device_a.view(), device_b.view(), out.view());
      out.download();
      ASSERT_TRUE(same_bits(got.view(), want.view()));

      ref->activate(a.view(), Activation::silu, want.view());
      backend->activate(device_a.view(), Activation::silu, out.view());
      out.download();
      ASSERT_TRUE(same_bits(got.view(), want.view()));

      std::vector<int32_t> picked;
      for (int64_t i = 0; i < rows; ++i) {
        picked.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(rows)));
      }
      ref->embed(a.view(), picked, want.view());
      backend->embed(device_a.view(), picked, out.view());
      // The device's copy of the ids is its own by now.
      std::fill(picked.begin(), picked.end(), -1);
      out.download();
      ASSERT_TRUE(same_bits(got.view(), want.view()));

      GuardedMatrix sum = a;
      ref->add(sum.view(), b.view());
      backend->add(device_a.view(), device_b.view());
      device_a.download();
      ASSERT_TRUE(same_bits(a.view(), sum.view()));
    }
  }
}

TEST_F(CudaAlignedOps, ManySinusoidsEqualRef) {
  const auto backend = make_gpu();
  std::mt19937 random(46);
  std::vector<float> times = random_floats(150, random, 0, 10'000);
  GuardedMatrix frequencies = random_vector(DType::f32, 40, random, 0.3f, 0.5f);
  GuardedMatrix got(DType::f32, 150, 80, 83), want(DType::f32, 150, 80);
  make_ref_backend()->sinusoids(times, as_vector(frequencies.view()), want.view());
  const Operand device_frequencies(*backend, frequencies);
  Operand out(*backend, got);
  backend->sinusoids(times, device_frequencies.vector(), out.view());
  out.download();
  expect_close(got.view(), want.view(), [](int64_t, int64_t) { return 0x1p-22; });
}

TEST_F(CudaAlignedOps, GroupNormEqualsRef) {
  const auto backend = make_gpu();
  std::mt19937 random(47);
  for (const DType type : kTypes) {
    for (const GroupNormCase& c :
         {GroupNormCase{type, 1, 128, 32, 1e-6f}, GroupNormCase{type, 1000, 128, 32, 1e-6f, true},
          GroupNormCase{type, 333, 512, 32, 1e-6f, true}, GroupNormCase{type, 70, 4096, 32},
          GroupNormCase{type, 4096, 8, 1}, GroupNormCase{type, 70'000, 32, 32, 1e-6f, true}}) {
      for (const float mean : {0.3f, 100.0f}) {
        GuardedMatrix x = aligned_matrix(type, c.rows, c.channels, random, 2, mean);
        expect_group_norm_right(*backend, c, std::move(x), random);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// As expect_conv2d_right(), whose rows are never aligned. The last three take several strips.
TEST_F(CudaAlignedOps, Conv2dEqualsRef) {
  const auto backend = make_gpu();
  const auto ref = make_ref_backend();
  std::mt19937 random(50);
  for (const DType type : kTypes) {
    for (const ConvCase& c :
         {ConvCase{type, 24, 40, 64, 64}, ConvCase{type, 33, 17, 128, 128},
          ConvCase{type, 16, 16, 512, 32, 1}, ConvCase{type, 40, 24, 128, 3},
          ConvCase{type, 24, 40, 64, 64, 3, true}, ConvCase{type, 12, 14, 512, 40, 3, true},
          ConvCase{type, 600, 600, 2, 100, 1}, ConvCase{type, 503, 401, 64, 2},
          ConvCase{type, 502, 402, 64, 2, 3, true}}) {
      SCOPED_TRACE(fmt::format("{} {}x{} pixels, {} to {} channels, kernel {}", name_of(c.type),
                               c.height, c.width, c.channels, c.out_channels, c.kernel));
      const int64_t pixels = c.height * c.width, k = c.kernel * c.kernel * c.channels;
      GuardedMatrix x = aligned_matrix(type, c.doubled ? pixels / 4 : pixels, c.channels, random);
      GuardedMatrix weight = random_matrix(type, c.out_channels, k, random, 0.3f, 0, 0);
      GuardedMatrix bias = random_vector(type, c.out_channels, random, 2);
      GuardedMatrix got(type, pixels, c.out_channels);
      const Operand device_x(*backend, x), device_weight(*backend, weight),
          device_bias(*backend, bias);
      Operand out(*backend, got);
      backend->conv2d({device_x.view(), device_weight.view(), device_bias.vector(), out.view(),
                       c.height, c.width, c.kernel, c.doubled});
      out.download();
      GuardedMatrix wide_x = widened(x), wide_weight = widened(weight), wide_bias = widened(bias);
      GuardedMatrix want(DType::f32, pixels, c.out_channels);
      ref->conv2d({wide_x.view(), wide_weight.view(), as_vector(wide_bias.view()), want.view(),
                   c.height, c.width, c.kernel, c.doubled});
      // k roundings of partial sums, which are a few dozen at most and seldom that large; a product
      // left out is a thousand times as much.
      const double error = 0x1p-21 * static_cast<double>(k + 1);
      expect_close(got.view(), want.view(), [&](int64_t, int64_t) { return error; });
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(CudaAlignedOps, MatmulWithBiasEqualsRef) {
  const auto backend = make_gpu();
  std::mt19937 random(49);
  for (const DType type : kTypes) {
    for (const int64_t offset : {0, 1}) {  // of the bias, in elements
      const int64_t m = 200, n = 320, k = 512;
      GuardedMatrix a = random_matrix(type, m, k, random, 1, 0, 0);
      GuardedMatrix b = random_matrix(type, n, k, random, 1, 0, 0);
      GuardedMatrix biases = random_vector(type, n + 1, random, 10);
      const auto shifted = [&](TensorView row) {
        return TensorView(row.data + offset * bits_of(row.dtype) / 8, row.dtype, {n});
      };
      GuardedMatrix got(type, m, n), want(DType::f32, m, n), scale(DType::f32, m, n);
      GuardedMatrix wide_bias = widened(biases), absolute_a = magnitudes(a);
      GuardedMatrix absolute_b = magnitudes(b), absolute_bias = magnitudes(biases);
      const auto ref = make_ref_backend();
      ref->matmul(a.view(), b.view(), want.view(), shifted(wide_bias.view()));
      ref->matmul(absolute_a.view(), absolute_b.view(), scale.view(),
                  shifted(absolute_bias.view()));
      const Operand device_a(*backend, a), device_b(*backend, b), device_bias(*backend, biases);
      Operand out(*backend, got);
      backend->matmul(device_a.view(), device_b.view(), out.view(), shifted(device_bias.view()));
      out.download();
      // The 10 bits of TF32 would show: they move these sums by some ten times as much.
      expect_close(got.view(), want.view(), [&](int64_t i, int64_t j) {
        return 0x1p-21 * static_cast<double>(read_element(scale.view(), i, j));
      });
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace octet::test::model
