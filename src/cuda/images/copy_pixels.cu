// Pixels copied to other places: enlarged two by two, and with their neighbours side by side as the
// rows of a matrix product. Pixels are copied as words, which no conversion can change. A block is
// `wide` words of a pixel by some pixels.
#include <algorithm>

#include "base/checked.h"
#include "cuda/images/image_kernels.h"

namespace octet::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 1 << 20;  // pixels stride beyond

template <class Word>
struct CopyArgs {
  const Word* x;
  Word* out;
  int64_t x_stride, out_stride;  // in words
  int64_t first, count;          // pixels of the grid
  int64_t height, width;         // of x
  int words;                     // of a pixel
  int wide;
};

// Calls copy(pixel, word) for the thread's share.
template <class Word, class Copy>
__device__ void for_each_word(const CopyArgs<Word>& args, Copy copy) {
  const int high = kThreads / args.wide;
  const int64_t step = static_cast<int64_t>(gridDim.x) * high;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * high + threadIdx.x / args.wide;
       i < args.count; i += step) {
    for (int word = static_cast<int>(threadIdx.x) % args.wide; word < args.words;
         word += args.wide) {
      copy(i, word);
    }
  }
}

template <class Word>
__global__ void __launch_bounds__(kThreads, 4) upsample_kernel(const CopyArgs<Word> args) {
  for_each_word(args, [&](int64_t i, int word) {
    const Word value = args.x[i * args.x_stride + word];
    const int64_t y = i / args.width, column = i - y * args.width;
    Word* to = args.out + (4 * y * args.width + 2 * column) * args.out_stride + word;
    Word* below = to + 2 * args.width * args.out_stride;
    to[0] = value;
    to[args.out_stride] = value;
    below[0] = value;
    below[args.out_stride] = value;
  });
}

template <class Word>
__global__ void __launch_bounds__(kThreads, 4) unfold_kernel(const CopyArgs<Word> args) {
  for_each_word(args, [&](int64_t i, int word) {
    const int64_t pixel = args.first + i, y = pixel / args.width, column = pixel - y * args.width;
    const Word* from = args.x + pixel * args.x_stride + word;
    Word* to = args.out + i * args.out_stride + word;
#pragma unroll
    for (int tap = 0; tap < 9; ++tap) {
      const int down = tap / 3 - 1, right = tap % 3 - 1;
      const bool inside = y + down >= 0 && y + down < args.height && column + right >= 0 &&
                          column + right < args.width;
      Word value{};
      if (inside) value = from[(down * args.width + right) * args.x_stride];
      to[tap * args.words] = value;
    }
  });
}

// Calls launch(args, blocks) with the widest words that fit every address.
template <class Launch>
void with_words(const ConstTensorView& x, const TensorView& out, int64_t height, int64_t width,
                int64_t first, int64_t count, Launch launch) {
  const auto element = static_cast<int64_t>(bits_of(x.dtype) / 8);
  const int64_t x_pitch = (x.shape[0] > 1 ? x.row_stride() : 0) * element;
  const int64_t out_pitch = (out.shape[0] > 1 ? out.row_stride() : 0) * element;
  const int64_t bytes = x.shape[1] * element;
  const auto as_words = [&]<class Word>(Word*) {
    constexpr auto kBytes = static_cast<int64_t>(sizeof(Word));
    CopyArgs<Word> args{.x = x.as<Word>(),
                        .out = out.as<Word>(),
                        .x_stride = x_pitch / kBytes,
                        .out_stride = out_pitch / kBytes,
                        .first = first,
                        .count = count,
                        .height = height,
                        .width = width,
                        .words = static_cast<int>(bytes / kBytes),
                        .wide = 1};
    while (args.wide < kThreads && args.wide < args.words) args.wide *= 2;
    const int64_t blocks = ceil_div(count, kThreads / args.wide);
    launch(args, static_cast<unsigned>(std::min(blocks, kMaxBlocks)));
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

void launch_upsample(const ConstTensorView& x, int64_t height, int64_t width, const TensorView& out,
                     CUstream_st* stream) {
  with_words(x, out, height, width, 0, x.shape[0],
             [&]<class Word>(const CopyArgs<Word>& args, unsigned blocks) {
               upsample_kernel<Word><<<blocks, kThreads, 0, stream>>>(args);
             });
}

void launch_unfold(const ConstTensorView& x, int64_t height, int64_t width, int64_t first,
                   const TensorView& out, CUstream_st* stream) {
  with_words(x, out, height, width, first, out.shape[0],
             [&]<class Word>(const CopyArgs<Word>& args, unsigned blocks) {
               unfold_kernel<Word><<<blocks, kThreads, 0, stream>>>(args);
             });
}

}  // namespace octet::cuda
