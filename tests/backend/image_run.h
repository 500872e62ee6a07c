// group_norm and conv2d on any backend, compared with ref.
#pragma once

#include <algorithm>

#include "backend/model_run.h"

namespace octet::test::model {

struct GroupNormCase {
  DType type = DType::f32;
  int64_t rows = 1, channels = 1, groups = 1;
  float eps = 1e-6f;
  bool silu = false;
};

// Errors before the rounding: a few of the result, of the bias that is added, and, since a mean is
// subtracted, of the group's largest element as the norm scales it. The slope of SiLU is at most
// 1.1, its own error far below.
inline void expect_group_norm_right(Backend& backend, const GroupNormCase& c, GuardedMatrix x,
                                    std::mt19937& random) {
  SCOPED_TRACE(fmt::format("{} [{}, {}] in {} groups, eps {}{}", name_of(c.type), c.rows,
                           c.channels, c.groups, c.eps, c.silu ? ", silu" : ""));
  GuardedMatrix weight = random_vector(DType::f32, c.channels, random, 0.5f, 1);
  GuardedMatrix bias = random_vector(DType::f32, c.channels, random);
  GuardedMatrix wide = widened(x), want(DType::f32, c.rows, c.channels);
  GroupNorm how{c.groups, c.eps, as_vector(weight.view()), as_vector(bias.view()), c.silu};
  make_ref_backend()->group_norm(wide.view(), how, want.view());

  std::vector<double> error(static_cast<size_t>(c.channels));
  const int64_t width = c.channels / c.groups;
  for (int64_t first = 0; first < c.channels; first += width) {
    double mean = 0, variance = 0, largest = 0;
    const auto each = [&](auto body) {
      for (int64_t i = 0; i < c.rows; ++i) {
        for (int64_t j = first; j < first + width; ++j) body(wide.view().row<float>(i)[j]);
      }
    };
    const auto count = static_cast<double>(c.rows * width);
    each([&](double value) { mean += value / count; });
    each([&](double value) {
      variance += (value - mean) * (value - mean) / count;
      largest = std::fmax(largest, std::fabs(value));
    });
    for (int64_t j = first; j < first + width; ++j) {
      const double gain =
          std::fabs(read_element(weight.view(), 0, j)) / std::sqrt(variance + c.eps);
      error[static_cast<size_t>(j)] =
          kFewRoundings * (gain * largest + std::fabs(read_element(bias.view(), 0, j)));
    }
  }

  const Operand device_x(backend, x), device_weight(backend, weight), device_bias(backend, bias);
  GuardedMatrix got(c.type, c.rows, c.channels, c.channels + 8);
  Operand out(backend, got);
  how.weight = device_weight.vector();
  how.bias = device_bias.vector();
  backend.group_norm(device_x.view(), how, out.view());
  out.download();
  expect_close(got.view(), want.view(), [&](int64_t i, int64_t j) {
    return 1.1 * error[static_cast<size_t>(j)] +
           kFewRoundings * std::fabs(read_element(want.view(), i, j));
  });
}

inline void expect_group_norm_right(Backend& backend) {
  std::mt19937 random(31);
  for (const DType type : kTypes) {
    for (const GroupNormCase& c :
         {GroupNormCase{type, 1, 1, 1}, GroupNormCase{type, 1, 32, 32},
          GroupNormCase{type, 7, 12, 3, 1e-5f}, GroupNormCase{type, 35, 64, 32, 1e-6f, true},
          GroupNormCase{type, 100, 128, 32, 1e-6f, true}, GroupNormCase{type, 15, 33, 3},
          GroupNormCase{type, 64, 512, 32, 1e-6f, true}, GroupNormCase{type, 2100, 8, 2}}) {
      expect_group_norm_right(backend, c, random_matrix(type, c.rows, c.channels, random, 2, 0.3f),
                              random);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// A constant image, one that is so faint that eps decides, one with a mean far from zero, a large
// one, and one with a NaN, whose group alone shows it.
inline void expect_group_norm_of_hard_images_right(Backend& backend) {
  std::mt19937 random(32);
  for (const DType type : kTypes) {
    const GroupNormCase c{type, 90, 24, 3, 1e-4f};
    expect_group_norm_right(backend, c, random_matrix(type, 90, 24, random, 0, 3), random);
    expect_group_norm_right(backend, c, random_matrix(type, 90, 24, random, 1e-3f), random);
    expect_group_norm_right(backend, c, random_matrix(type, 90, 24, random, 16, 1000), random);
    expect_group_norm_right(backend, c, random_matrix(type, 90, 24, random, 1e4f), random);
    GuardedMatrix with_nan = random_matrix(type, 90, 24, random);
    write_element(with_nan.view(), 71, 9, kNaN);
    expect_group_norm_right(backend, c, std::move(with_nan), random);
  }
}

struct ConvCase {
  DType type = DType::f32;
  int64_t height = 1, width = 1, channels = 1, out_channels = 1;
  int64_t kernel = 3;
  bool doubled = false;
};

// A sum of up to kernel^2 * channels products in f32, each a rounding of the sum of magnitudes
// (which is ref's convolution of magnitudes), and the bias.
inline void expect_conv2d_right(Backend& backend, const ConvCase& c) {
  SCOPED_TRACE(fmt::format("{} {}x{} pixels, {} to {} channels, kernel {}", name_of(c.type),
                           c.height, c.width, c.channels, c.out_channels, c.kernel));
  std::mt19937 random(static_cast<uint32_t>(c.height * 37 + c.width * 5 + c.channels));
  const int64_t pixels = c.height * c.width, taps = c.kernel * c.kernel;
  GuardedMatrix x = random_matrix(c.type, pixels, c.channels, random);
  GuardedMatrix weight = random_matrix(c.type, c.out_channels, taps * c.channels, random, 0.3f);
  GuardedMatrix bias = random_vector(c.type, c.out_channels, random, 2);
  GuardedMatrix want(DType::f32, pixels, c.out_channels), scale(DType::f32, pixels, c.out_channels);
  const auto of_ref = [&](GuardedMatrix image, GuardedMatrix filter, GuardedMatrix shift,
                          GuardedMatrix& to) {
    make_ref_backend()->conv2d({image.view(), filter.view(), as_vector(shift.view()), to.view(),
                                c.height, c.width, c.kernel});
  };
  of_ref(widened(x), widened(weight), widened(bias), want);
  of_ref(magnitudes(x), magnitudes(weight), magnitudes(bias), scale);

  const Operand device_x(backend, x), device_weight(backend, weight), device_bias(backend, bias);
  GuardedMatrix got(c.type, pixels, c.out_channels, c.out_channels + 8);
  Operand out(backend, got);
  backend.conv2d({device_x.view(), device_weight.view(), device_bias.vector(), out.view(), c.height,
                  c.width, c.kernel});
  out.download();
  const double roundings = 0x1p-23 * static_cast<double>(taps * c.channels + 1);
  expect_close(got.view(), want.view(),
               [&](int64_t i, int64_t j) { return roundings * read_element(scale.view(), i, j); });
}

inline void expect_conv2d_right(Backend& backend) {
  for (const DType type : kTypes) {
    for (const int64_t kernel : {1, 3}) {
      for (const auto& [height, width] :
           {std::pair<int64_t, int64_t>{1, 1}, {1, 7}, {7, 1}, {2, 2}, {5, 3}, {3, 40}, {17, 16}}) {
        expect_conv2d_right(backend, {type, height, width, 8, 5, kernel});
      }
      expect_conv2d_right(backend, {type, 5, 6, 1, 1, kernel});
      expect_conv2d_right(backend, {type, 5, 6, 3, 33, kernel});
      expect_conv2d_right(backend, {type, 4, 9, 65, 64, kernel});
      expect_conv2d_right(backend, {type, 9, 11, 128, 3, kernel});
      expect_conv2d_right(backend, {type, 30, 31, 16, 16, kernel});
      expect_conv2d_right(backend, {type, 2, 3, 0, 4, kernel});
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// A pixel that is NaN shows in those next to it, in all channels, and nowhere else.
inline void expect_conv2d_keeps_nan_within_reach(Backend& backend) {
  std::mt19937 random(33);
  for (const DType type : kTypes) {
    for (const int64_t kernel : {1, 3}) {
      const int64_t height = 6, width = 7, channels = 16, out_channels = 20;
      GuardedMatrix x = random_matrix(type, height * width, channels, random);
      write_element(x.view(), 2 * width + 6, 15, kNaN);  // at the right border
      GuardedMatrix weight = random_matrix(type, out_channels, kernel * kernel * channels, random);
      GuardedMatrix bias = random_vector(type, out_channels, random);
      GuardedMatrix got(type, height * width, out_channels);
      const Operand device_x(backend, x), device_weight(backend, weight),
          device_bias(backend, bias);
      Operand out(backend, got);
      backend.conv2d({device_x.view(), device_weight.view(), device_bias.vector(), out.view(),
                      height, width, kernel});
      out.download();
      for (int64_t i = 0; i < height * width; ++i) {
        const int64_t reach = kernel / 2;
        const bool near = std::abs(i / width - 2) <= reach && std::abs(i % width - 6) <= reach;
        for (int64_t j = 0; j < out_channels; ++j) {
          ASSERT_EQ(std::isnan(read_element(got.view(), i, j)), near) << i << " " << j;
        }
      }
    }
  }
}

// Of x with its pixels two by two, as ref lays them out.
inline void expect_doubled_conv2d_right(Backend& backend) {
  std::mt19937 random(34);
  for (const DType type : kTypes) {
    for (const auto& [height, width] :
         {std::pair<int64_t, int64_t>{2, 2}, {2, 14}, {10, 6}, {34, 32}}) {
      for (const int64_t channels : {1, 3, 16, 130}) {
        SCOPED_TRACE(fmt::format("{} {}x{}, {}", name_of(type), height, width, channels));
        GuardedMatrix x = random_matrix(type, height * width / 4, channels, random);
        GuardedMatrix whole(type, height * width, channels);
        for (int64_t i = 0; i < height * width; ++i) {
          const int64_t from = i / width / 2 * (width / 2) + i % width / 2;
          for (int64_t j = 0; j < channels; ++j) {
            write_element(whole.view(), i, j, read_element(x.view(), from, j));
          }
        }
        GuardedMatrix weight = random_matrix(type, 20, 9 * channels, random, 0.3f);
        GuardedMatrix bias = random_vector(type, 20, random);
        const Operand device_x(backend, x), device_whole(backend, whole),
            device_weight(backend, weight), device_bias(backend, bias);
        GuardedMatrix got(type, height * width, 20, 25), want(type, height * width, 20, 25);
        Operand out(backend, got), of_whole(backend, want);
        ConvArgs args{.x = device_whole.view(),
                      .weight = device_weight.view(),
                      .bias = device_bias.vector(),
                      .out = of_whole.view(),
                      .height = height,
                      .width = width,
                      .kernel = 3};
        backend.conv2d(args);
        of_whole.download();
        args.x = device_x.view();
        args.out = out.view();
        args.doubled = true;
        backend.conv2d(args);
        out.download();
        EXPECT_TRUE(same_bits(got.view(), want.view()));
      }
    }
  }
}

// In place of x: the same bits.
inline void expect_group_norm_in_place_right(Backend& backend) {
  std::mt19937 random(35);
  for (const DType type : kTypes) {
    for (const bool silu : {false, true}) {
      for (const int64_t channels : {9, 24, 128}) {
        GuardedMatrix x = random_matrix(type, 1000, channels, random, 2, 0.3f);
        GuardedMatrix weight = random_vector(DType::f32, channels, random);
        GuardedMatrix bias = random_vector(DType::f32, channels, random);
        const Operand device_weight(backend, weight), device_bias(backend, bias);
        const GroupNorm how{channels == 9 ? 3 : 8, 1e-6f, device_weight.vector(),
                            device_bias.vector(), silu};
        GuardedMatrix got = x, want(type, 1000, channels);
        const Operand device_x(backend, x);
        Operand in_place(backend, got), apart(backend, want);
        backend.group_norm(device_x.view(), how, apart.view());
        backend.group_norm(in_place.view(), how, in_place.view());
        in_place.download();
        apart.download();
        EXPECT_TRUE(same_bits(got.view(), want.view())) << name_of(type) << " " << channels;
      }
    }
  }
}

}  // namespace octet::test::model
