// Copies pixels with their neighbours side by side, as the rows of a matrix product. They are
// copied as words, so that no conversion changes them. A block is `wide` words of a pixel by some
// pixels.
#include <algorithm>

#include "base/checked.h"
#include "cuda/images/image_kernels.h"

namespace octet::cuda {
namespace {

constexpr int kCopyThreads = 256;
constexpr int64_t kMaxCopyBlocks = 1 << 20;  // pixels stride beyond

template <class Word>
struct CopyArgs {
  const Word* x;
  Word* out;
  int64_t x_stride, out_stride;  // in words
  int64_t first, count;          // pixels of the grid
  int64_t height, width;         // of the image
  int words;                     // of a pixel
  int wide;
};

// Calls copy(pixel, word) for the thread's share.
template <class Word, class Copy>
__device__ void for_each_word(const CopyArgs<Word>& args, Copy copy) {
  const int high = kCopyThreads / args.wide;
  const int64_t step = static_cast<int64_t>(gridDim.x) * high;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * high + threadIdx.x / args.wide;
       i < args.count; i += step) {
    for (int word = static_cast<int>(threadIdx.x) % args.wide; word < args.words;
         word += args.wide) {
      copy(i, word);
    }
  }
}

// Doubled: pixel (y, x) of the image is pixel (y / 2, x / 2) of args.x.
template <class Word, bool kDoubled>
__global__ void __launch_bounds__(kCopyThreads, 4) unfold_kernel(const CopyArgs<Word> args) {
  for_each_word(args, [&](int64_t i, int word) {
    const int64_t pixel = args.first + i, y = pixel / args.width, column = pixel - y * args.width;
    const Word* from = args.x + word;
    Word* to = args.out + i * args.out_stride + word;
#pragma unroll
    for (int tap = 0; tap < 9; ++tap) {
      const int down = tap / 3 - 1, right = tap % 3 - 1;
      const bool inside = y + down >= 0 && y + down < args.height && column + right >= 0 &&
                          column + right < args.width;
      const int64_t at = kDoubled ? (y + down) / 2 * (args.width / 2) + (column + right) / 2
                                  : pixel + down * args.width + right;
      Word value{};
      if (inside) value = from[at * args.x_stride];
      to[tap * args.words] = value;
    }
  });
}

// Calls launch(args, blocks) with the widest words that fit every address.
template <class Launch>
void with_words(const ConvArgs& conv, const TensorView& out, int64_t first, Launch launch) {
  const ConstTensorView& x = conv.x;
  const int64_t count = out.shape[0];
  const auto element = static_cast<int64_t>(bits_of(x.dtype) / 8);
  const int64_t x_pitch = (x.shape[0] > 1 ? x.row_stride() : 0) * element;
  const int64_t out_pitch = (out.shape[0] > 1 ? out.row_stride() : 0) * element;
  const int64_t bytes = x.shape[1] * element;
  const auto as_words = [&]<class Word>(Word*) {
    constexpr auto kBytes = static_cast<int64_t>(sizeof(Word));
    // Of the image's first pixel, which a strip need not have.
    const Word* image = x.as<Word>() - conv.x_first() * (x_pitch / kBytes);
    CopyArgs<Word> args{.x = image,
                        .out = out.as<Word>(),
                        .x_stride = x_pitch / kBytes,
                        .out_stride = out_pitch / kBytes,
                        .first = first,
                        .count = count,
                        .height = conv.height,
                        .width = conv.width,
                        .words = static_cast<int>(bytes / kBytes),
                        .wide = 1};
    while (args.wide < kCopyThreads && args.wide < args.words) args.wide *= 2;
    const int64_t blocks = ceil_div(count, kCopyThreads / args.wide);
    launch(args, static_cast<unsigned>(std::min(blocks, kMaxCopyBlocks)));
  };
  const auto all = reinterpret_cast<uintptr_t>(x.data) | reinterpret_cast<uintptr_t>(out.data) |
                   static_cast<uintptr_t>(x_pitch | out_pitch | bytes);
  if (all % 16 == 0) {
    as_words(static_cast<uint4*>(nullptr));
  } else if (all % 4 == 0) {
    as_words(static_cast<uint32_t*>(nullptr));
  } else {
    as_words(static_cast<uint16_t*>(nullptr));
  }
}

}  // namespace

void launch_unfold(const ConvArgs& args, int64_t first, const TensorView& out,
                   CUstream_st* stream) {
  with_words(args, out, first, [&]<class Word>(const CopyArgs<Word>& copy, unsigned blocks) {
    const auto kernel = args.doubled ? unfold_kernel<Word, true> : unfold_kernel<Word, false>;
    kernel<<<blocks, kCopyThreads, 0, stream>>>(copy);
  });
}

}  // namespace octet::cuda
