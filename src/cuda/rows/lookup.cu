// A model's inputs: rows of a table, and sines and cosines of times.
#include <algorithm>

#include "base/checked.h"
#include "cuda/rows/model_kernels.h"
#include "cuda/rows/values.cuh"

namespace octet::cuda {
namespace {

constexpr int kLookupThreads = 256;
constexpr int kLookupBlocks = 8;  // blocks of a multiprocessor
constexpr int kTimes = 64;        // that travel with one launch

// Rows are copied as words, so that no conversion changes them.
template <class Word>
struct EmbedArgs {
  const Word* table;
  const int32_t* rows;  // [count]
  Word* out;
  int64_t table_stride, out_stride;  // in words, like the columns
  int64_t count, columns;
};

template <class Word>
__global__ void __launch_bounds__(kLookupThreads, 4) embed_kernel(const EmbedArgs<Word> args) {
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    const Word* from = args.table + args.rows[i] * args.table_stride;
    Word* to = args.out + i * args.out_stride;
    for (int64_t j = threadIdx.x; j < args.columns; j += kLookupThreads) to[j] = from[j];
  }
}

template <class Word>
void launch_words(const ConstTensorView& table, const int32_t* rows, const TensorView& out,
                  int multiprocessors, CUstream_st* stream) {
  const int64_t element = bits_of(out.dtype) / 8;
  const auto words = [&](int64_t elements) {
    return elements * element / static_cast<int64_t>(sizeof(Word));
  };
  const EmbedArgs<Word> args{.table = table.as<Word>(),
                             .rows = rows,
                             .out = out.as<Word>(),
                             .table_stride = words(table.row_stride()),
                             .out_stride = words(out.row_stride()),
                             .count = out.shape[0],
                             .columns = words(out.shape[1])};
  const auto blocks =
      std::min<int64_t>(args.count, static_cast<int64_t>(multiprocessors) * kLookupBlocks);
  embed_kernel<Word><<<static_cast<unsigned>(blocks), kLookupThreads, 0, stream>>>(args);
}

struct Times {
  float values[kTimes];
};

// The product is rounded before its sine is taken, as ref has it; sincosf() is right to an ulp or
// two for every angle, which __sinf() would not be.
template <class T>
__global__ void __launch_bounds__(kLookupThreads)
    sinusoids_kernel(const Times times, int64_t count, const float* frequencies, int64_t half,
                     T* out, int64_t stride) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kLookupThreads;
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * kLookupThreads + threadIdx.x;
       at < count * half; at += step) {
    const int64_t i = at / half, j = at % half;
    float sine, cosine;
    sincosf(__fmul_rn(times.values[i], frequencies[j]), &sine, &cosine);
    store_one(out + i * stride + j, sine);
    store_one(out + i * stride + half + j, cosine);
  }
}

}  // namespace

void launch_embed(const ConstTensorView& table, const int32_t* rows, const TensorView& out,
                  int multiprocessors, CUstream_st* stream) {
  const auto element = static_cast<uintptr_t>(bits_of(out.dtype) / 8);
  const auto bytes = [&](int64_t elements) { return static_cast<uintptr_t>(elements) * element; };
  const uintptr_t common = reinterpret_cast<uintptr_t>(table.data) |
                           reinterpret_cast<uintptr_t>(out.data) | bytes(out.shape[1]) |
                           bytes(table.row_stride()) | bytes(out.row_stride());
  if (common % 16 == 0) {
    launch_words<uint4>(table, rows, out, multiprocessors, stream);
  } else {
    launch_words<uint16_t>(table, rows, out, multiprocessors, stream);
  }
}

void launch_sinusoids(std::span<const float> times, const ConstTensorView& frequencies,
                      const TensorView& out, CUstream_st* stream) {
  const int64_t half = out.shape[1] / 2;
  for (size_t first = 0; first < times.size(); first += kTimes) {
    const size_t count = std::min<size_t>(times.size() - first, kTimes);
    Times some{};
    std::copy_n(times.begin() + static_cast<std::ptrdiff_t>(first), count, some.values);
    const auto rows = static_cast<int64_t>(count);
    const auto blocks =
        static_cast<unsigned>(std::min<int64_t>(ceil_div(rows * half, kLookupThreads), 4096));
    const auto launch = [&]<class T>(T* to) {
      sinusoids_kernel<T><<<blocks, kLookupThreads, 0, stream>>>(
          some, rows, frequencies.as<float>(), half,
          to + static_cast<int64_t>(first) * out.row_stride(), out.row_stride());
    };
    if (out.dtype == DType::bf16) {
      launch(out.as<bf16_t>());
    } else {
      launch(out.as<float>());
    }
  }
}

}  // namespace octet::cuda
