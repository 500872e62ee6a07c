// Values of attention in 8 bits; see QuantizedValues for the order of their codes.
#include "base/checked.h"
#include "cuda/rows/head_kernels.h"
#include "cuda/rows/row_scale.cuh"
#include "cuda/rows/team_rows.cuh"
#include "cuda/rows/values.cuh"

namespace octet::cuda {
namespace {

constexpr int kCodedKeys = QuantizedValues::kKeys;  // of a block
constexpr int kKeyGroup = 16;                       // that a thread has, of eight channels
constexpr int kKeyGroups = kCodedKeys / kKeyGroup;
constexpr int kMostHeadDim = 256;
constexpr uint32_t kZeroCodes = 0x80808080u;

struct QuantizeValuesArgs {
  const std::byte* v;  // [keys, heads * head_dim]
  uint8_t* codes;      // [heads * head_dim, blocks * kCodedKeys]
  float* scales;       // [heads, blocks]
  int64_t pitch;       // of v, in bytes
  int64_t codes_stride;
  int64_t scales_stride;
  int64_t keys;
  int blocks;
  int head_dim;

  QuantizeValuesArgs(const ConstTensorView& from, int64_t heads, const QuantizedValues& out)
      : v(from.data),
        codes(out.codes.as<uint8_t>()),
        scales(out.scales.as<float>()),
        pitch(pitch_of(from)),
        codes_stride(pitch_of(out.codes)),
        scales_stride(out.scales.shape[0] > 1 ? out.scales.row_stride() : 0),
        keys(from.shape[0]),
        blocks(static_cast<int>(out.scales.shape[1])),
        head_dim(static_cast<int>(from.shape[1] / heads)) {}
};

// The largest of all threads' magnitudes, as bits; `memory`: a word for each warp.
__device__ uint32_t largest_of_block(uint32_t bits, uint32_t* memory) {
  bits = __reduce_max_sync(kFullWarp, bits);
  if (threadIdx.x % 32 == 0) memory[threadIdx.x / 32] = bits;
  __syncthreads();
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) bits = max(bits, memory[warp]);
  return bits;
}

// Earlier results of unpacking it are not kept: there are no registers for them.
template <class T>
__device__ void forget_unpacked(Chunk<T>& chunk) {
#pragma unroll
  for (uint4& part : chunk.part) {
    asm volatile("" : "+r"(part.x), "+r"(part.y), "+r"(part.z), "+r"(part.w));
  }
}

template <class T>
__device__ float value_of(const Chunk<T>& chunk, int channel) {
  const int word = channel * static_cast<int>(sizeof(T)) / 4;
  const uint4 part = chunk.part[word / 4];
  const uint32_t words[4] = {part.x, part.y, part.z, part.w};
  if constexpr (sizeof(T) == 4) {
    return __uint_as_float(words[word % 4]);
  } else {
    float pair[2];
    unpack_pair<T>(words[word % 4], pair);
    return pair[channel % 2];
  }
}

// A block has kCodedKeys keys of one head, which it reads once; a thread eight channels of
// kKeyGroup keys, whose codes are one vector per channel. These pass through shared memory so that
// whole rows of kCodedKeys are stored.
template <class T>
__global__ void __launch_bounds__(kMostHeadDim, sizeof(T) == 2 ? 2 : 1)
    quantize_values_kernel(const QuantizeValuesArgs args) {
  extern __shared__ uint4 codes_of_channel[];  // [head_dim][kKeyGroups], swizzled
  __shared__ uint32_t largest[kMostHeadDim / 32];
  const int chunks = args.head_dim / 8;
  const int chunk = static_cast<int>(threadIdx.x) % chunks;
  const int group = static_cast<int>(threadIdx.x) / chunks;  // past the last: a thread without keys
  const int head = static_cast<int>(blockIdx.x) / args.blocks;
  const int block = static_cast<int>(blockIdx.x) % args.blocks;
  const int64_t first = int64_t{block} * kCodedKeys + group * kKeyGroup;
  const std::byte* at = args.v + first * args.pitch +
                        (int64_t{head} * args.head_dim + chunk * 8) * int64_t{sizeof(T)};
  Chunk<T> keys[kKeyGroup];
#pragma unroll
  for (int i = 0; i < kKeyGroup; ++i) {
    keys[i] = load_chunk<T>(at + i * args.pitch, group < kKeyGroups && first + i < args.keys);
  }
  float amax = 0;
#pragma unroll
  for (int i = 0; i < kKeyGroup; ++i) {
    float values[8];
    unpack_chunk(keys[i], values);
#pragma unroll
    for (const float value : values) amax = max_magnitude(amax, value);
    forget_unpacked(keys[i]);
  }
  const RowScale scale(__uint_as_float(largest_of_block(__float_as_uint(amax), largest)));
  if (threadIdx.x == 0) args.scales[head * args.scales_stride + block] = scale.scale();
  if (group < kKeyGroups) {
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      uint32_t words[4];
#pragma unroll
      for (int t = 0; t < 4; ++t) {
        float values[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          values[i] = value_of<T>(keys[QuantizedValues::key_at(4 * t + i)], c);
        }
        words[t] = kZeroCodes;
        if (scale.finite()) words[t] ^= quantized_word(values, scale.inverse);
      }
      codes_of_channel[(chunk * 8 + c) * kKeyGroups + (group ^ chunk % 8)] =
          make_uint4(words[0], words[1], words[2], words[3]);
    }
  }
  __syncthreads();
  uint8_t* out =
      args.codes + int64_t{head} * args.head_dim * args.codes_stride + int64_t{block} * kCodedKeys;
  for (int i = static_cast<int>(threadIdx.x); i < args.head_dim * kKeyGroups;
       i += static_cast<int>(blockDim.x)) {
    const int channel = i / kKeyGroups, part = i % kKeyGroups;
    store_vector(out + channel * args.codes_stride + part * kKeyGroup,
                 codes_of_channel[channel * kKeyGroups + (part ^ channel / 8 % 8)]);
  }
}

// For heads of any size and alignment; reads them twice.
template <class T>
__global__ void __launch_bounds__(kMostHeadDim)
    quantize_any_values_kernel(const QuantizeValuesArgs args) {
  __shared__ uint32_t largest[kMostHeadDim / 32];
  const int head = static_cast<int>(blockIdx.x) / args.blocks;
  const int block = static_cast<int>(blockIdx.x) % args.blocks;
  const int64_t first = int64_t{block} * kCodedKeys;
  const auto value = [&](int key, int channel) {
    if (first + key >= args.keys) return 0.0f;
    const std::byte* row = args.v + (first + key) * args.pitch;
    return load_one(reinterpret_cast<const T*>(row) + int64_t{head} * args.head_dim + channel);
  };
  float amax = 0;
  for (int i = static_cast<int>(threadIdx.x); i < args.head_dim * kCodedKeys; i += kMostHeadDim) {
    amax = max_magnitude(amax, value(i / args.head_dim, i % args.head_dim));
  }
  const RowScale scale(__uint_as_float(largest_of_block(__float_as_uint(amax), largest)));
  if (threadIdx.x == 0) args.scales[head * args.scales_stride + block] = scale.scale();
  for (int i = static_cast<int>(threadIdx.x); i < args.head_dim * kCodedKeys; i += kMostHeadDim) {
    const int channel = i / kCodedKeys, position = i % kCodedKeys;
    const auto key = static_cast<int>(QuantizedValues::key_at(position));
    const uint32_t code = scale.finite() ? quantized_byte(value(key, channel), scale.inverse) : 0;
    args.codes[(int64_t{head} * args.head_dim + channel) * args.codes_stride + first + position] =
        static_cast<uint8_t>(code ^ 0x80);
  }
}

template <class T>
void launch_values_typed(const QuantizeValuesArgs& args, unsigned blocks, CUstream_st* stream) {
  const bool fits = args.head_dim % 8 == 0 && args.head_dim <= kMostHeadDim &&
                    is_aligned(args.v, args.pitch, 16) &&
                    is_aligned(args.codes, args.codes_stride, 16);
  if (!fits) {
    quantize_any_values_kernel<T><<<blocks, kMostHeadDim, 0, stream>>>(args);
    return;
  }
  const auto threads = static_cast<unsigned>(round_up(args.head_dim / 8 * kKeyGroups, 32));
  const size_t shared = static_cast<size_t>(args.head_dim) * kCodedKeys;
  quantize_values_kernel<T><<<blocks, threads, shared, stream>>>(args);
}

}  // namespace

void launch_quantize_values(const ConstTensorView& v, int64_t heads, const QuantizedValues& out,
                            CUstream_st* stream) {
  const QuantizeValuesArgs args(v, heads, out);
  const auto launch =
      v.dtype == DType::bf16 ? launch_values_typed<bf16_t> : launch_values_typed<float>;
  launch(args, static_cast<unsigned>(heads * args.blocks), stream);
}

}  // namespace octet::cuda
