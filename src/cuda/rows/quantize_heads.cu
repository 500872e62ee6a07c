// Heads that are normed, rotated and quantized in one pass, and the mean of such heads over rows.
#include "cuda/rows/head_kernels.h"
#include "cuda/rows/head_parts.cuh"

namespace octet::cuda {
namespace {

// Heads of a team in flight: codes, scale and mean take registers, too.
template <class T>
constexpr int kHeadBatch = sizeof(T) == 2 ? 3 : 1;
// Rows that a block of the mean's first stage adds up: the same on every GPU, and so is the sum.
constexpr int kMeanRows = 128;
constexpr int kMeanThreads = 512;
constexpr int kMeanWarps = kMeanThreads / 32;
constexpr int kMeanInFlight = 2;   // rows of a team
constexpr int kMeanLanes = 8;      // of the second stage, for a channel
constexpr int kMeanChannels = 32;  // of a block there

struct QuantizeHeadsArgs {
  HeadArgs heads;
  int8_t* codes;      // [rows, heads * 2 * half], codes_stride apart
  float* scales;      // [heads, rows], scales_stride apart
  const float* mean;  // [(heads - mean_from) * 2 * half]
  int mean_from;      // the first head that loses it
  int64_t codes_stride;
  int64_t scales_stride;
  float scale_factor;
};

__device__ inline uint32_t max_bits(float a, float b) {
  return __float_as_uint(max_magnitude(max_magnitude(0.0f, a), b));
}

// From a head of a lane's team.
__device__ inline void subtract_mean(const QuantizeHeadsArgs& all, int half, int head, int j,
                                     bool there, float (&y)[2 * kHeadPairs]) {
  const float* at = all.mean + (head - all.mean_from) * 2 * half + j;
  const PairFactors mean(at, at + half, there);
#pragma unroll
  for (int i = 0; i < kHeadPairs; ++i) {
    y[i] -= mean.low[i];
    y[kHeadPairs + i] -= mean.high[i];
  }
}

// kHalf: half of head_dim if all batches are full and have one mean or none, or 0. Instructions are
// the bottleneck: the checks that such batches do not need were a third of them.
template <class T, int kHalf>
__global__ void __launch_bounds__(kHeadThreads, kBoundHeadBlocks)
    quantize_heads_kernel(const QuantizeHeadsArgs all, const HeadBatches batches) {
  constexpr bool kFull = kHalf > 0;
  constexpr int kHeads = kHeadBatch<T>;
  const HeadArgs args = all.heads.template with_half<kHalf>();
  const int warps = static_cast<int>(gridDim.x) * kHeadWarps;
  const int items = static_cast<int>(args.rows) * batches.count;
  for (int item = static_cast<int>(blockIdx.x) * kHeadWarps + static_cast<int>(threadIdx.x) / 32;
       item < items; item += warps) {
    const int row_index = item / batches.count;
    const HeadPlace<kFull> place(args, batches, item - row_index * batches.count);
    const int64_t row = row_index;
    const LoadedHeads<T, kHeads> heads(args, place, row);
    const bool valid = place.has_pairs(args.half);
    const int64_t angle = row * args.angles_stride + place.j;
    const PairFactors angles(args.cos + angle, args.sin + angle, valid);
    const PairFactors weight(place.weight + place.j, place.weight + args.half + place.j, valid);
    float factor[kHeads];
    heads.norm_factors(args, factor);
    uint32_t bits[kHeads];
#pragma unroll
    for (int b = 0; b < kHeads; ++b) {
      const int head = place.head + b * place.teams;
      float y[2 * kHeadPairs];
      heads.rotated(b, factor[b], weight, angles, y);
      if (place.end > all.mean_from) {
        subtract_mean(all, args.half, head, place.j,
                      kFull || (valid && head >= all.mean_from && head < place.end), y);
      }
      float amax[2] = {};
#pragma unroll
      for (int i = 0; i < 2 * kHeadPairs; ++i) amax[i % 2] = max_magnitude(amax[i % 2], y[i]);
      bits[b] = valid ? max_bits(amax[0], amax[1]) : 0;
#pragma unroll
      for (int mask = 1; mask < 32; mask *= 2) {
        if (mask < args.lanes) bits[b] = max(bits[b], __shfl_xor_sync(kFullWarp, bits[b], mask));
      }
      const RowScale scale(__uint_as_float(bits[b]));
      uint32_t words[4] = {};
      if (scale.finite()) {
#pragma unroll
        for (int i = 0; i < 4; ++i) words[i] = quantized_word(y + 4 * i, scale.inverse);
      }
      if (!place.has(head) || !valid) continue;
      int8_t* at = all.codes + row * all.codes_stride + head * 2 * args.half + place.j;
      store_vector(at, make_uint2(words[0], words[1]));
      store_vector(at + args.half, make_uint2(words[2], words[3]));
    }
    // Lane b of a team has the scale of head b: one division for all. (A team has a lane or more.)
#pragma unroll 1
    for (int b = place.j / kHeadPairs; b < kHeads; b += args.lanes) {
      const int head = place.head + b * place.teams;
      uint32_t amax = bits[0];
#pragma unroll
      for (int i = 1; i < kHeads; ++i) amax = b == i ? bits[i] : amax;
      if (!place.has(head)) continue;
      all.scales[head * all.scales_stride + row] =
          __fmul_rn(RowScale(__uint_as_float(amax)).scale(), all.scale_factor);
    }
  }
}

// A warp per head, which goes over it three times.
template <class T>
__global__ void __launch_bounds__(kHeadThreads)
    quantize_any_heads_kernel(const QuantizeHeadsArgs all) {
  const HeadArgs& args = all.heads;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t warps = static_cast<int64_t>(gridDim.x) * kHeadWarps;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kHeadWarps + threadIdx.x / 32;
       item < args.rows * args.heads; item += warps) {
    const int64_t row = item / args.heads;
    const int index = static_cast<int>(item - row * args.heads);
    const AnyHead<T> head(args, row, index);
    const int64_t channel = int64_t{index} * 2 * args.half;
    const auto pair = [&](int j) {
      float2 y = head.rotated(j);
      if (index >= all.mean_from) {
        const float* mean = all.mean + int64_t{index - all.mean_from} * 2 * args.half + j;
        y.x -= mean[0];
        y.y -= mean[args.half];
      }
      return y;
    };
    uint32_t bits = 0;
    for (int j = lane; j < args.half; j += 32) {
      const float2 y = pair(j);
      bits = max(bits, max_bits(y.x, y.y));
    }
#pragma unroll
    for (int mask = 1; mask < 32; mask *= 2) {
      bits = max(bits, __shfl_xor_sync(kFullWarp, bits, mask));
    }
    const RowScale scale(__uint_as_float(bits));
    int8_t* codes = all.codes + row * all.codes_stride + channel;
    for (int j = lane; j < args.half; j += 32) {
      const float2 y = pair(j);
      const bool finite = scale.finite();
      codes[j] = static_cast<int8_t>(finite ? quantized_byte(y.x, scale.inverse) : 0);
      codes[args.half + j] = static_cast<int8_t>(finite ? quantized_byte(y.y, scale.inverse) : 0);
    }
    if (lane == 0) {
      all.scales[index * all.scales_stride + row] = __fmul_rn(scale.scale(), all.scale_factor);
    }
  }
}

// First stage: sums[block of rows][channel], each over kMeanRows rows and divided by `divisor`: if
// one block takes all rows, there is no second. A block has one head, a team every n-th of its
// rows; the sums of the teams are added up in their order.
template <class T>
__global__ void __launch_bounds__(kMeanThreads)
    sum_heads_kernel(const HeadArgs args, float divisor, float* sums) {
  constexpr int kLaneValues = 2 * kHeadPairs, kLanePitch = kLaneValues + 1;  // for banks
  __shared__ float of_lanes[kMeanThreads * kLanePitch];
  const int head = static_cast<int>(blockIdx.y);
  const HeadPlace<> place(args, head);
  const int team = static_cast<int>(threadIdx.x) / args.lanes, teams = kMeanWarps * place.teams;
  const bool valid = place.j < args.half;
  const PairFactors weight(place.weight + place.j, place.weight + args.half + place.j, valid);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kMeanRows;
  const int64_t end = min(first + kMeanRows, args.rows);
  float sum[kLaneValues] = {};
#pragma unroll 1
  for (int64_t step = first; step < end; step += kMeanInFlight * teams) {
#pragma unroll  // without an early exit: the loads of all rows are on their way together
    for (int i = 0; i < kMeanInFlight; ++i) {
      const int64_t row = step + i * teams + team;
      const bool there = row < end;
      const LoadedHeads<T, 1> heads(args, place, row, there);
      const int64_t angle = row * args.angles_stride + place.j;
      const PairFactors angles(args.cos + angle, args.sin + angle, valid && there);
      float factor[1], y[kLaneValues];
      heads.norm_factors(args, factor);
      heads.rotated(0, factor[0], weight, angles, y);
#pragma unroll
      for (int v = 0; v < kLaneValues; ++v) sum[v] += there ? y[v] : 0.0f;
    }
  }
#pragma unroll
  for (int v = 0; v < kLaneValues; ++v) of_lanes[threadIdx.x * kLanePitch + v] = sum[v];
  __syncthreads();
  sums += (blockIdx.x * args.heads + head) * 2 * int64_t{args.half};
  for (int channel = static_cast<int>(threadIdx.x); channel < 2 * args.half;
       channel += kMeanThreads) {
    const int j = channel % args.half;
    const float* of_team = of_lanes + j / kHeadPairs * kLanePitch + j % kHeadPairs +
                           (channel < args.half ? 0 : kHeadPairs);
    float total = 0;
#pragma unroll 8
    for (int t = 0; t < teams; ++t) total += of_team[t * args.lanes * kLanePitch];
    sums[channel] = __fdiv_rn(total, divisor);
  }
}

// The same for any heads: a warp per head and block of rows, whose lanes each add to memory of
// their own.
template <class T>
__global__ void __launch_bounds__(kHeadThreads)
    sum_any_heads_kernel(const HeadArgs args, float divisor, float* sums) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kMeanRows;
  const int64_t end = min(first + kMeanRows, args.rows);
  sums += blockIdx.x * (int64_t{args.heads} * 2 * args.half);
  for (int index = static_cast<int>(threadIdx.x) / 32; index < args.heads; index += kHeadWarps) {
    float* to = sums + int64_t{index} * 2 * args.half;
    for (int64_t row = first; row < end; ++row) {
      const AnyHead<T> head(args, row, index);
      for (int j = static_cast<int>(threadIdx.x) % 32; j < args.half; j += 32) {
        const float2 y = head.rotated(j);
        to[j] = row == first ? y.x : to[j] + y.x;
        to[args.half + j] = row == first ? y.y : to[args.half + j] + y.y;
      }
    }
    for (int j = static_cast<int>(threadIdx.x) % 32; j < args.half; j += 32) {
      to[j] = __fdiv_rn(to[j], divisor);
      to[args.half + j] = __fdiv_rn(to[args.half + j], divisor);
    }
  }
}

// Second stage: each lane adds every kMeanLanes-th partial sum, then the lanes in their order.
__global__ void __launch_bounds__(kMeanChannels* kMeanLanes)
    mean_of_sums_kernel(const float* partial, int64_t blocks, int64_t channels, float count,
                        float* mean) {
  __shared__ float sums[kMeanLanes][kMeanChannels];
  const int lane = static_cast<int>(threadIdx.x) / kMeanChannels;
  const int at = static_cast<int>(threadIdx.x) % kMeanChannels;
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kMeanChannels + at;
  float sum = 0;
  if (channel < channels) {
#pragma unroll 4
    for (int64_t block = lane; block < blocks; block += kMeanLanes) {
      sum += partial[block * channels + channel];
    }
  }
  sums[lane][at] = sum;
  __syncthreads();
  if (lane > 0 || channel >= channels) return;
#pragma unroll
  for (int other = 1; other < kMeanLanes; ++other) sum += sums[other][at];
  mean[channel] = __fdiv_rn(sum, count);
}

template <class T>
void launch_quantize_typed(const QuantizeHeadsArgs& args, int multiprocessors,
                           CUstream_st* stream) {
  const HeadArgs& heads = args.heads;
  if (heads.fits_teams() && is_aligned(args.codes, args.codes_stride, 8) &&
      is_aligned(args.mean, 0, 16)) {
    const HeadBatches batches(heads, kHeadBatch<T>);
    const unsigned blocks = head_blocks(heads.rows * batches.count, multiprocessors, kHeadBlocks);
    const bool full = batches.are_full(heads) &&
                      (args.mean_from == heads.heads || args.mean_from == heads.first_heads);
    const auto kernel = full && heads.half == 128  ? quantize_heads_kernel<T, 128>
                        : full && heads.half == 64 ? quantize_heads_kernel<T, 64>
                                                   : quantize_heads_kernel<T, 0>;
    kernel<<<blocks, kHeadThreads, 0, stream>>>(args, batches);
  } else {
    const unsigned blocks = head_blocks(heads.rows * heads.heads, multiprocessors, 6);
    quantize_any_heads_kernel<T><<<blocks, kHeadThreads, 0, stream>>>(args);
  }
}

template <class T>
void launch_sum_typed(const HeadArgs& args, float divisor, float* sums, CUstream_st* stream) {
  const auto blocks = static_cast<unsigned>(ceil_div(args.rows, kMeanRows));
  if (args.fits_teams() && args.heads < (1 << 16)) {
    const dim3 grid(blocks, static_cast<unsigned>(args.heads));
    sum_heads_kernel<T><<<grid, kMeanThreads, 0, stream>>>(args, divisor, sums);
  } else {
    sum_any_heads_kernel<T><<<blocks, kHeadThreads, 0, stream>>>(args, divisor, sums);
  }
}

}  // namespace

void launch_rotate_quantize_heads(const ConstTensorView& x, const HeadRotation& how,
                                  const ConstTensorView& mean, const QuantizedHeads& out,
                                  int multiprocessors, CUstream_st* stream) {
  const int64_t with_mean = mean.data == nullptr ? 0 : mean.shape[0] / (x.shape[1] / how.heads);
  const QuantizeHeadsArgs args{
      .heads = HeadArgs(x, how),
      .codes = out.codes.as<int8_t>(),
      .scales = out.scales.as<float>(),
      .mean = mean.as<float>(),
      .mean_from = static_cast<int>(how.heads - with_mean),
      .codes_stride = pitch_of(out.codes),
      .scales_stride = out.scales.shape[0] > 1 ? out.scales.row_stride() : 0,
      .scale_factor = out.scale_factor};
  const auto launch =
      x.dtype == DType::bf16 ? launch_quantize_typed<bf16_t> : launch_quantize_typed<float>;
  launch(args, multiprocessors, stream);
}

size_t head_mean_scratch_bytes(const ConstTensorView& x) {
  const int64_t blocks = ceil_div(x.shape[0], kMeanRows);
  return blocks == 1 ? 0 : static_cast<size_t>(blocks * x.shape[1]) * sizeof(float);
}

void launch_rotated_head_mean(const ConstTensorView& x, const HeadRotation& how, float* mean,
                              float* scratch, CUstream_st* stream) {
  const auto launch = x.dtype == DType::bf16 ? launch_sum_typed<bf16_t> : launch_sum_typed<float>;
  const int64_t blocks = ceil_div(x.shape[0], kMeanRows);
  const auto count = static_cast<float>(x.shape[0]);
  if (blocks == 1) {
    launch(HeadArgs(x, how), count, mean, stream);
    return;
  }
  launch(HeadArgs(x, how), 1.0f, scratch, stream);
  const int64_t channels = x.shape[1];
  mean_of_sums_kernel<<<static_cast<unsigned>(ceil_div(channels, kMeanChannels)),
                        kMeanChannels * kMeanLanes, 0, stream>>>(scratch, blocks, channels, count,
                                                                 mean);
}

}  // namespace octet::cuda
