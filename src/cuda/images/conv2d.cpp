#include "cuda/images/conv2d.h"

#include <algorithm>

#include "base/checked.h"
#include "cuda/check.h"
#include "cuda/images/image_kernels.h"

namespace octet::cuda {
namespace {

// Of unfolded pixels at a time: enough that a product fills any GPU, and little next to the image
// of a size at which the whole would not fit.
constexpr int64_t kUnfoldedBytes = int64_t{128} << 20;

template <class View>
View some_rows(const View& matrix, int64_t first, int64_t count) {
  const int64_t element = bits_of(matrix.dtype) / 8;
  return View::rows(matrix.data + first * matrix.row_stride() * element, matrix.dtype, count,
                    matrix.shape[1], matrix.row_stride());
}

}  // namespace

void conv2d(Device& device, Matmul& matmul, const ConvArgs& args) {
  if (args.kernel == 1) {
    matmul.run(args.x, args.weight, args.out, args.bias);
    return;
  }
  const int64_t pixels = args.height * args.width, k = args.weight.shape[1];
  const int64_t element = bits_of(args.x.dtype) / 8;
  // Aligned rows, whatever the channels.
  const int64_t stride = round_up(std::max<int64_t>(k, 1), 16 / element);
  // Chunks of one size, whole tiles each: the library plans once for all but the last.
  const int64_t fitting = std::max<int64_t>(kUnfoldedBytes / (stride * element), 1);
  const int64_t even = ceil_div(pixels, ceil_div(pixels, fitting));
  const int64_t rows = std::min(round_up(even, 256), pixels);
  const Buffer unfolded = device.allocate(static_cast<size_t>(rows * stride * element));
  for (int64_t first = 0; first < pixels; first += rows) {
    const int64_t count = std::min(rows, pixels - first);
    const TensorView chunk = TensorView::rows(unfolded.data(), args.x.dtype, count, k, stride);
    launch_unfold(args.x, args.height, args.width, first, chunk, device.stream());
    check_launch("conv2d");
    matmul.run(chunk, args.weight, some_rows(args.out, first, count), args.bias);
  }
}

}  // namespace octet::cuda
