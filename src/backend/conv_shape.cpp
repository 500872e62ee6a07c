// How a convolution is cut into pieces: the same on every device, so that what is planned for one
// without a device holds there.
#include <algorithm>

#include "backend/ops.h"
#include "base/checked.h"

namespace octet {
namespace {

// Bytes of unfolded pixels, or of a product's accumulators, at a time: enough to fill any GPU, and
// little compared with an image so large that the whole would not fit.
constexpr int64_t kPieceBytes = int64_t{128} << 20;

}  // namespace

// Pieces of equal size in whole tiles, so that the library plans once for all but the last.
int64_t ConvShape::pixels_at_once() const {
  const int64_t element = bits_of(dtype) / 8;
  const int64_t inputs = std::max<int64_t>(kernel * kernel * channels, 1);
  // A product without unfolding is kept in F32 until its bias is added.
  const int64_t row_bytes = kernel == 1 ? out_channels * static_cast<int64_t>(sizeof(float))
                                        : round_up(inputs, 16 / element) * element;
  const int64_t fitting = std::max<int64_t>(kPieceBytes / std::max<int64_t>(row_bytes, 1), 1);
  const int64_t even = ceil_div(pixels(), std::max<int64_t>(ceil_div(pixels(), fitting), 1));
  return std::min(round_up(even, 256), pixels());
}

PixelRange ConvShape::reach(const PixelRange& made) const {
  if (kernel == 1 || made.count == 0) return made;
  const int64_t scale = doubled ? 2 : 1, line = width / scale;
  const int64_t above = std::max<int64_t>(made.first / width - 1, 0) / scale;
  const int64_t below = std::min((made.first + made.count - 1) / width + 1, height - 1) / scale;
  return {above * line, (below - above + 1) * line};
}

}  // namespace octet
