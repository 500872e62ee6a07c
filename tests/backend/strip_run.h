// Images in strips on any backend: group norms have the bits of the whole image, convolutions those
// of a host's, and elsewhere its result but for roundings.
#pragma once

#include <algorithm>

#include "backend/host_backend.h"
#include "backend/model_run.h"

namespace octet::test::model {

template <class View>
View pixels_of(const View& image, int64_t first, int64_t count) {
  return View::rows(image.data + first * image.row_stride() * (bits_of(image.dtype) / 8),
                    image.dtype, count, image.shape[1], image.row_stride());
}

// Strips of so many rows are added; then others are normed.
inline void expect_group_norm_of_strips_right(Backend& backend, DType type, int64_t rows,
                                              int64_t channels, int64_t gap) {
  SCOPED_TRACE(
      fmt::format("{} [{}, {}], rows {} apart", name_of(type), rows, channels, channels + gap));
  std::mt19937 random(static_cast<uint32_t>(channels));
  GuardedMatrix x = random_matrix(type, rows, channels, random, 2, 0.3f, gap);
  GuardedMatrix weight = random_vector(DType::f32, channels, random);
  GuardedMatrix bias = random_vector(DType::f32, channels, random);
  const Operand device_x(backend, x), device_weight(backend, weight), device_bias(backend, bias);
  GroupNorm how{channels % 8 == 0 ? 8 : 3, 1e-6f, device_weight.vector(), device_bias.vector(),
                /*silu=*/true};
  GuardedMatrix want(type, rows, channels);
  Operand whole(backend, want);
  backend.group_norm(device_x.view(), how, whole.view());
  whole.download();
  for (const int64_t strip : {rows / 140 + 1, rows / 3 + 1, rows}) {
    SCOPED_TRACE(strip);
    GroupSums sums = backend.begin_group_sums(type, rows, channels);
    for (int64_t first = 0; first < rows; first += strip) {
      backend.add_group_sums(sums,
                             pixels_of(device_x.view(), first, std::min(strip, rows - first)));
    }
    how.image = &sums;
    GuardedMatrix got(type, rows, channels);
    Operand out(backend, got);
    const int64_t normed = rows / 2 + 1;
    for (int64_t first = 0; first < rows; first += normed) {
      const int64_t count = std::min(normed, rows - first);
      backend.group_norm(pixels_of(device_x.view(), first, count), how,
                         pixels_of(out.view(), first, count));
    }
    out.download();
    EXPECT_TRUE(same_bits(got.view(), want.view()));
  }
}

inline void expect_group_norm_of_strips_right(Backend& backend) {
  for (const DType type : kTypes) {
    for (const int64_t channels : {9, 24, 128}) {
      for (const int64_t rows : {1, 1000, 70'001}) {
        for (const int64_t gap : {0, 3}) {
          if (rows > 1000 && (channels != 24 || gap != 0)) continue;
          expect_group_norm_of_strips_right(backend, type, rows, channels, gap);
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

// The image in strips of so many pixels; x of a strip begins with what it reaches.
inline void convolve_in_strips(Backend& backend, const ConvArgs& whole, const TensorView& out,
                               int64_t pixels) {
  const ConvShape shape = whole.shape();
  for (int64_t first = 0; first < shape.pixels(); first += pixels) {
    ConvArgs args = whole;
    const int64_t count = std::min(pixels, shape.pixels() - first);
    const PixelRange reach = shape.reach({first, count});
    args.x = pixels_of(whole.x, reach.first, reach.count);
    args.out = pixels_of(out, first, count);
    args.strip = {.first = first, .x_first = reach.first};
    backend.conv2d(args);
  }
}

struct StripCase {
  int64_t height = 1, width = 1, channels = 1, kernel = 3;
  bool doubled = false;
};

// One to try, `gap` elements between the rows of its matrices.
struct StripProblem {
  StripProblem(Backend& backend, DType type, const StripCase& tried, int64_t outputs,
               std::mt19937& random, int64_t gap)
      : c(tried),
        x(random_matrix(type, c.doubled ? pixels / 4 : pixels, c.channels, random, 1, 0, gap)),
        weight(random_matrix(type, outputs, taps * c.channels, random, 0.3f, 0, gap)),
        bias(random_vector(type, outputs, random)),
        device_x(backend, x),
        device_weight(backend, weight),
        device_bias(backend, bias) {}

  ConvArgs into(const TensorView& out) const {
    return {.x = device_x.view(),
            .weight = device_weight.view(),
            .bias = device_bias.vector(),
            .out = out,
            .height = c.height,
            .width = c.width,
            .kernel = c.kernel,
            .doubled = c.doubled};
  }

  StripCase c;
  int64_t pixels = c.height * c.width, taps = c.kernel * c.kernel;
  GuardedMatrix x, weight, bias;
  Operand device_x, device_weight, device_bias;
};

inline void expect_conv2d_of_strips_right(Backend& backend, DType type, const StripCase& c) {
  SCOPED_TRACE(fmt::format("{} {}x{} of {}, kernel {}{}", name_of(type), c.height, c.width,
                           c.channels, c.kernel, c.doubled ? ", doubled" : ""));
  constexpr int64_t kOut = 20;
  std::mt19937 random(36);
  const StripProblem problem(backend, type, c, kOut, random, /*gap=*/3);
  const int64_t pixels = problem.pixels, taps = problem.taps;
  GuardedMatrix want(type, pixels, kOut, kOut + 5);
  Operand of_whole(backend, want);
  const ConvArgs whole = problem.into(of_whole.view());
  backend.conv2d(whole);
  of_whole.download();
  // Sums of other parts first: a rounding of the magnitudes for each, and one of the result.
  const double most = static_cast<double>(taps * c.channels) * 0x1p-23 * 25;
  for (const int64_t strip : {int64_t{1}, c.width, 2 * c.width + 3, pixels}) {
    SCOPED_TRACE(strip);
    GuardedMatrix got(type, pixels, kOut, kOut + 5);
    Operand out(backend, got);
    convolve_in_strips(backend, whole, out.view(), strip);
    out.download();
    if (keeps_data_on_host(backend) || strip == pixels) {
      EXPECT_TRUE(same_bits(got.view(), want.view()));
    } else {
      expect_close(got.view(), want.view(), [&](int64_t i, int64_t j) {
        return most + 2 * half_ulp(type) * std::fabs(read_element(want.view(), i, j));
      });
    }
  }
}

inline void expect_conv2d_of_strips_right(Backend& backend) {
  for (const DType type : kTypes) {
    for (const StripCase& c : {StripCase{5, 7, 3, 1}, StripCase{5, 7, 3, 3}, StripCase{1, 9, 16, 3},
                               StripCase{9, 1, 16, 3}, StripCase{17, 16, 33, 3},
                               StripCase{4, 6, 16, 3, true}, StripCase{10, 14, 3, 3, true}}) {
      expect_conv2d_of_strips_right(backend, type, c);
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace octet::test::model
