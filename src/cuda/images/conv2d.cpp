#include "cuda/images/conv2d.h"

#include <algorithm>

#include "base/checked.h"
#include "cuda/check.h"
#include "cuda/images/image_kernels.h"

namespace octet::cuda {
namespace {

template <class View>
View some_rows(const View& matrix, int64_t first, int64_t count) {
  const int64_t element = bits_of(matrix.dtype) / 8;
  return View::rows(matrix.data + first * matrix.row_stride() * element, matrix.dtype, count,
                    matrix.shape[1], matrix.row_stride());
}

// The product is kept in f32 until its bias is added; for a whole image that would be the largest
// matrix of all.
void convolve_pixels(Matmul& matmul, const ConvArgs& args) {
  const int64_t pixels = args.out.shape[0], rows = args.shape().pixels_at_once();
  const int64_t of_x = args.first() - args.x_first();
  for (int64_t first = 0; first < pixels; first += rows) {
    const int64_t count = std::min(rows, pixels - first);
    matmul.run(some_rows(args.x, of_x + first, count), args.weight,
               some_rows(args.out, first, count), args.bias);
  }
}

}  // namespace

void conv2d(Device& device, Matmul& matmul, const ConvArgs& args) {
  if (args.kernel == 1) return convolve_pixels(matmul, args);
  const int64_t pixels = args.out.shape[0], k = args.weight.shape[1];
  const int64_t element = bits_of(args.x.dtype) / 8;
  // Aligned rows, whatever the channels.
  const int64_t stride = round_up(std::max<int64_t>(k, 1), 16 / element);
  const int64_t rows = std::min(args.shape().pixels_at_once(), pixels);
  const Buffer unfolded = device.allocate(static_cast<size_t>(rows * stride * element));
  for (int64_t first = 0; first < pixels; first += rows) {
    const int64_t count = std::min(rows, pixels - first);
    const TensorView chunk = TensorView::rows(unfolded.data(), args.x.dtype, count, k, stride);
    launch_unfold(args, args.first() + first, chunk, device.stream());
    check_launch("conv2d");
    matmul.run(chunk, args.weight, some_rows(args.out, first, count), args.bias);
  }
}

}  // namespace octet::cuda
