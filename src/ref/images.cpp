// Ops on images, the definitions. An image is a matrix with one row per pixel.
#include <cmath>

#include "backend/exact_silu.h"
#include "ref/elements.h"
#include "ref/ops.h"

namespace octet::ref {

void add_group_sums(const GroupSums& sums, const ConstTensorView& x) {
  const TensorView image = sums.memory.view(sums.dtype, {sums.rows, sums.channels});
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    for (int64_t j = 0; j < sums.channels; ++j) store(image, sums.added + i, j, load(x, i, j));
  }
}

void group_norm(const ConstTensorView& x, const GroupNorm& how, const TensorView& out) {
  const ConstTensorView image =
      how.image == nullptr
          ? x
          : how.image->memory.view(how.image->dtype, {how.image->rows, how.image->channels});
  const int64_t rows = image.shape[0], width = x.shape[1] / how.groups;
  const auto count = static_cast<double>(rows * width);
  for (int64_t first = 0; first < x.shape[1]; first += width) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = first; j < first + width; ++j) mean += load(image, i, j) / count;
    }
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = first; j < first + width; ++j) {
        const double apart = load(image, i, j) - mean;
        variance += apart * apart / count;
      }
    }
    const double factor = 1 / std::sqrt(variance + how.eps);
    for (int64_t i = 0; i < x.shape[0]; ++i) {
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
  for (int64_t i = 0; i < args.out.shape[0]; ++i) {
    const int64_t y = (args.first() + i) / args.width, x = (args.first() + i) % args.width;
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
      store(args.out, i, out, static_cast<float>(sum));
    }
  }
}

}  // namespace octet::ref
