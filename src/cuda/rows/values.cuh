// Values of a matrix as memory has them, one at a time or eight, and as f32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cuda/rows/row_ptx.cuh"
#include "tensor/tensor.h"

namespace octet::cuda {

// Eight consecutive values as they come from memory.
template <class T>
struct Chunk {
  uint4 part[sizeof(T) / 2];
};

template <class T>
__device__ inline Chunk<T> load_chunk(const std::byte* at, bool valid) {
  Chunk<T> chunk;
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(T) / 2); ++i) {
    // Evict first: the row is not read again, and q should be in L2 when the GEMM runs.
    chunk.part[i] = valid ? __ldcs(reinterpret_cast<const uint4*>(at) + i) : make_uint4(0, 0, 0, 0);
  }
  return chunk;
}

template <class T>
__device__ inline void unpack_pair(uint32_t pair, float* v) {
  if constexpr (std::is_same_v<T, bf16_t>) {
    v[0] = __uint_as_float(pair << 16);
    v[1] = __uint_as_float(pair & 0xffff0000u);
  } else {
    v[0] = f16_to_f32(static_cast<uint16_t>(pair));
    v[1] = f16_to_f32(static_cast<uint16_t>(pair >> 16));
  }
}

template <class T>
__device__ inline void unpack_chunk(const Chunk<T>& chunk, float* v) {
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(T) / 2); ++i) {
    const uint4 part = chunk.part[i];
    if constexpr (std::is_same_v<T, float>) {
      v[4 * i + 0] = __uint_as_float(part.x);
      v[4 * i + 1] = __uint_as_float(part.y);
      v[4 * i + 2] = __uint_as_float(part.z);
      v[4 * i + 3] = __uint_as_float(part.w);
    } else {
      unpack_pair<T>(part.x, v + 0);
      unpack_pair<T>(part.y, v + 2);
      unpack_pair<T>(part.z, v + 4);
      unpack_pair<T>(part.w, v + 6);
    }
  }
}

// Eight that are read again soon, by others too.
template <class T>
__device__ inline Chunk<T> load_common_chunk(const void* from) {
  Chunk<T> chunk;
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(T) / 2); ++i) {
    chunk.part[i] = __ldg(static_cast<const uint4*>(from) + i);
  }
  return chunk;
}

// Likewise for a vector; zeros if it is null.
template <class T>
__device__ inline Chunk<T> load_vector_chunk(const void* vector, int64_t first) {
  if (vector == nullptr) return {};
  return load_common_chunk<T>(static_cast<const std::byte*>(vector) + first * sizeof(T));
}

template <class T>
__device__ inline void load_eight(const void* from, float (&v)[8]) {
  unpack_chunk(load_common_chunk<T>(from), v);
}

// Rounded once; f16 is never stored like this.
template <class T>
__device__ inline Chunk<T> pack_chunk(const float* v) {
  Chunk<T> chunk;
  if constexpr (std::is_same_v<T, float>) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      chunk.part[i] = make_uint4(__float_as_uint(v[4 * i]), __float_as_uint(v[4 * i + 1]),
                                 __float_as_uint(v[4 * i + 2]), __float_as_uint(v[4 * i + 3]));
    }
  } else {
    chunk.part[0] = make_uint4(pack_bf16(v[0], v[1]), pack_bf16(v[2], v[3]), pack_bf16(v[4], v[5]),
                               pack_bf16(v[6], v[7]));
  }
  return chunk;
}

template <class T>
__device__ inline void store_chunk(std::byte* to, const Chunk<T>& chunk) {
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(T) / 2); ++i) {
    store_vector(to + 16 * i, chunk.part[i]);
  }
}

// Not read again soon: the L2 should evict it first.
template <class T>
__device__ inline void store_streamed_chunk(std::byte* to, const Chunk<T>& chunk) {
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(T) / 2); ++i) {
    __stcs(reinterpret_cast<uint4*>(to) + i, chunk.part[i]);
  }
}

template <class T>
__device__ inline void store_eight(void* to, const float* v) {
  store_chunk(static_cast<std::byte*>(to), pack_chunk<T>(v));
}

__device__ inline float load_one(const float* from) { return *from; }
__device__ inline float load_one(const bf16_t* from) {
  return __uint_as_float(static_cast<uint32_t>(from->bits) << 16);
}

__device__ inline void store_one(float* to, float value) { *to = value; }
__device__ inline void store_one(bf16_t* to, float value) {
  to->bits = static_cast<uint16_t>(pack_bf16(value, value));
}

}  // namespace octet::cuda
