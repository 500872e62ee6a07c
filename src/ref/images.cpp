// Ops on images, the definitions. An image is a matrix with one row per pixel.
#include <cmath>

#include "backend/exact_silu.h"
#include "ref/elements.h"
#include "ref/ops.h"

namespace octet::ref {

void group_norm(const ConstTensorView& x, const GroupNorm& how, const TensorView& out) {
  const int64_t rows = x.shape[0], width = x.shape[1] / how.groups;
  const auto count = static_cast<double>(rows * width);
  for (int64_t first = 0; first < x.shape[1]; first += width) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = first; j < first + width; ++j) mean += load(x, i, j) / count;
    }
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = first; j < first + width; ++j) {
        const double apart = load(x, i, j) - mean;
        variance += apart * apart / count;
      }
    }
    const double factor = 1 / std::sqrt(variance + how.eps);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = first; j < first + width; ++j) {
        const double y =
            (load(x, i, j) - mean) * factor * how.weight.as<float>()[j] + how.bias.as<float>()[j];
        const auto rounded = static_cast<float>(y);
        store(out, i, j, how.silu ? exact_silu(rounded) : rounded);
      }
    }
  }
}

void conv2d(const ConvArgs& args) {
  const int64_t reach = args.kernel / 2, channels = args.channels();
  for (int64_t y = 0; y < args.height; ++y) {
    for (int64_t x = 0; x < args.width; ++x) {
      for (int64_t out = 0; out < args.out_channels(); ++out) {
        double sum = 0;
        for (int64_t tap = 0; tap < args.kernel * args.kernel; ++tap) {
          const int64_t from_y = y + tap / args.kernel - reach;
          const int64_t from_x = x + tap % args.kernel - reach;
          if (from_y < 0 || from_y >= args.height || from_x < 0 || from_x >= args.width) continue;
          for (int64_t c = 0; c < channels; ++c) {
            sum += static_cast<double>(load(args.x, args.row_of(from_y, from_x), c)) *
                   load(args.weight, out, tap * channels + c);
          }
        }
        sum += load_at(args.bias, out);
        store(args.out, y * args.width + x, out, static_cast<float>(sum));
      }
    }
  }
}

}  // namespace octet::ref
