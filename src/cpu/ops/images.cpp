// Ops on images, which are matrices with one row per pixel.
//
// A convolution multiplies the weight by the unfolded image, whose row for a pixel contains the
// pixels under the kernel one after the other. Each task unfolds the rows of its own chunk, panel
// by panel, so that the unfolded image, nine times as large as the image, never exists.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "cpu/matmul/panels.h"
#include "cpu/ops/ops.h"
#include "cpu/ops/row_tasks.h"

namespace octet::cpu {
namespace {

constexpr int64_t kImageTasksPerThread = 4;
constexpr int64_t kChunkBytes = 1 << 20;  // of the packed rows of a task: half of an L2

ThreadScratch weight_scratch;      // the packed weight, shared by all threads of a call
ThreadScratch image_bias_scratch;  // and the bias in f32
ThreadScratch image_scratch;

// An image is summed in so many parts of equally many rows, which are then added in their order:
// the same for any number of threads, and wherever the image is cut when its rows come in strips.
constexpr int64_t kGroupParts = 64;

int64_t parts_of(const GroupSums& sums) { return std::min(sums.rows, kGroupParts); }

template <class T>
void add_moments(const T* row, int64_t channels, double* sums, double* squares) {
  for (int64_t j = 0; j < channels; ++j) {
    const auto value = static_cast<double>(to_f32(row[j]));
    sums[j] += value;
    squares[j] += value * value;
  }
}

// The row of the unfolded image for a pixel; zeros outside the image.
void unfold(const ConvArgs& args, int64_t pixel, std::byte* to) {
  const int64_t reach = args.kernel / 2;
  const int64_t y = pixel / args.width, x = pixel % args.width;
  const auto bytes = static_cast<size_t>(args.channels() * bits_of(args.x.dtype) / 8);
  for (int64_t from_y = y - reach; from_y <= y + reach; ++from_y) {
    for (int64_t from_x = x - reach; from_x <= x + reach; ++from_x, to += bytes) {
      if (from_y < 0 || from_y >= args.height || from_x < 0 || from_x >= args.width) {
        std::memset(to, 0, bytes);
      } else {
        std::memcpy(to, row_bytes(args.x, args.row_of(from_y, from_x)), bytes);
      }
    }
  }
}

}  // namespace

// F64 [parts, 2, channels]: sums of values, and of their squares.
Buffer begin_group_sums(const GroupSums& sums) {
  const auto count = static_cast<size_t>(2 * parts_of(sums) * sums.channels);
  Buffer memory = allocate_host(count * sizeof(double));
  std::fill_n(reinterpret_cast<double*>(memory.data()), count, 0.0);
  return memory;
}

void add_group_sums(const Workers& workers, const GroupSums& sums, const ConstTensorView& x) {
  const int64_t parts = parts_of(sums), channels = sums.channels;
  const int64_t first = sums.added, end = first + x.shape[0];
  workers.pool.run(parts, [&](int64_t part, int) {
    double* own = reinterpret_cast<double*>(sums.memory.data()) + 2 * part * channels;
    const int64_t begin_row = std::max(sums.rows * part / parts, first),
                  end_row = std::min(sums.rows * (part + 1) / parts, end);
    for (int64_t i = begin_row; i < end_row; ++i) {
      if (x.dtype == DType::bf16) {
        add_moments(x.row<bf16_t>(i - first), channels, own, own + channels);
      } else {
        add_moments(x.row<float>(i - first), channels, own, own + channels);
      }
    }
  });
}

// Squares of f32 are exact in f64, and their sum nearly so: the variance may be computed as the
// difference of two means.
void group_norm(const Workers& workers, const ConstTensorView& x, const GroupNorm& how,
                const TensorView& out) {
  GroupSums own{.dtype = x.dtype, .rows = x.shape[0], .channels = x.shape[1]};
  if (how.image == nullptr) {
    own.memory = begin_group_sums(own);
    add_group_sums(workers, own, x);
  }
  const GroupSums& image = how.image == nullptr ? own : *how.image;
  const auto* moments = reinterpret_cast<const double*>(image.memory.data());
  const int64_t channels = x.shape[1], width = channels / how.groups;

  std::vector<float> mean(static_cast<size_t>(channels)), gain(mean);
  const auto count = static_cast<double>(image.rows * width);
  for (int64_t first = 0; first < channels; first += width) {
    double sum = 0, squares = 0;
    for (int64_t part = 0; part < parts_of(image); ++part) {
      const double* of_part = moments + 2 * part * channels;
      for (int64_t j = first; j < first + width; ++j) {
        sum += of_part[j];
        squares += of_part[channels + j];
      }
    }
    const double center = sum / count;
    // The variance is the first operand, so that a NaN stays.
    const double variance = std::max(squares / count - center * center, 0.0);
    const double factor = 1 / std::sqrt(variance + static_cast<double>(how.eps));
    for (int64_t j = first; j < first + width; ++j) {
      mean[static_cast<size_t>(j)] = static_cast<float>(center);
      gain[static_cast<size_t>(j)] =
          static_cast<float>(factor * static_cast<double>(how.weight.as<float>()[j]));
    }
  }
  const AffineRow row{mean.data(), gain.data(), how.bias.as<float>(), how.silu};
  for_each_row(workers.pool, x.shape[0], channels, [&](int64_t i) {
    workers.rows.affine(row_bytes(x, i), x.dtype, channels, row, row_bytes(out, i));
  });
}

void conv2d(const Workers& workers, const MatmulKernel& kernel, const ConvArgs& args) {
  if (args.kernel == 1) {
    const ConstTensorView x =
        ConstTensorView::rows(row_bytes(args.x, args.first() - args.x_first()), args.x.dtype,
                              args.out.shape[0], args.channels(), args.x.row_stride());
    matmul(workers.pool, kernel, x, args.weight, args.out, args.bias);
    return;
  }
  const FloatMicroKernel& micro = *kernel.micro;
  const int64_t pixels = args.out.shape[0], k = args.weight.shape[1], columns = args.out_channels();
  const int64_t element_bytes = bits_of(args.x.dtype) / 8;

  const Panels weight(micro, Panels::Side::b, columns, k);
  std::byte* packed_weight = weight_scratch.at_least(weight.bytes());
  workers.pool.run(weight.count(), [&](int64_t panel, int) {
    weight.pack(
        ConstTensorView::rows(row_bytes(args.weight, panel * micro.tile_n), args.weight.dtype,
                              weight.rows_of(panel), k, args.weight.row_stride()),
        panel, packed_weight);
  });
  float* bias = floats(image_bias_scratch, round_up(columns, micro.tile_n));
  for (int64_t j = 0; j < round_up(columns, micro.tile_n); ++j) {
    bias[j] = j < columns ? load_at(args.bias, j) : 0;
  }

  const int64_t row_packed = std::max<int64_t>(1, k * micro.packed_bytes);
  const int64_t fair = ceil_div(pixels, kImageTasksPerThread * workers.pool.threads());
  const int64_t per_task =
      round_up(std::clamp<int64_t>(kChunkBytes / row_packed, 1, fair), micro.tile_m);
  workers.pool.run(ceil_div(pixels, per_task), [&](int64_t task, int) {
    const int64_t first = task * per_task, rows = std::min(per_task, pixels - first);
    const Panels a(micro, Panels::Side::a, rows, k);
    const int64_t unfolded_bytes = round_up(micro.tile_m * k * element_bytes, kCacheLine);
    const int64_t packed_bytes = round_up(a.bytes(), kCacheLine);
    std::byte* unfolded =
        image_scratch.at_least(unfolded_bytes + packed_bytes + accumulator_bytes(micro, a));
    std::byte* packed = unfolded + unfolded_bytes;
    for (int64_t panel = 0; panel < a.count(); ++panel) {
      const int64_t at = first + panel * micro.tile_m;
      for (int64_t i = 0; i < a.rows_of(panel); ++i) {
        unfold(args, args.first() + at + i, unfolded + i * k * element_bytes);
      }
      a.pack(ConstTensorView(unfolded, args.x.dtype, {a.rows_of(panel), k}), panel, packed);
    }
    const TensorView out = TensorView::rows(row_bytes(args.out, first), args.out.dtype, rows,
                                            columns, args.out.row_stride());
    if (micro.begin_task != nullptr) micro.begin_task();  // nothing throws from here to end_task
    multiply_panels(micro, a, packed, weight, packed_weight, out, bias,
                    reinterpret_cast<float*>(packed + packed_bytes));
    if (micro.end_task != nullptr) micro.end_task();
  });
}

}  // namespace octet::cpu
