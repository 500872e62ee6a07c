// Quantization whose steps are rounded to the type of the rows, bf16 or f16:
// ActivationTransform::stepwise, bit for bit what ref/quantize.cpp does.
#pragma once

#include <type_traits>

#include "cuda/rows/row_scale.cuh"
#include "cuda/rows/values.cuh"

namespace octet::cuda {

// Two values, each as one of type T.
template <class T>
__device__ inline void round_pair(float* v) {
  if constexpr (std::is_same_v<T, bf16_t>) {
    unpack_pair<T>(pack_bf16(v[0], v[1]), v);
  } else {
    unpack_pair<T>(pack_f16(v[0], v[1]), v);
  }
}

// A row's scale, and the scale rounded to type T. Both inverses are 0 if there is none.
template <class T>
struct StepwiseScale : RowScale {
  float step;

  __device__ explicit StepwiseScale(float row_amax) : RowScale(row_amax) {
    float pair[2] = {scale(), 0.0f};
    round_pair<T>(pair);
    step = pair[0];
    if (inverse != 0.0f) inverse = __fdiv_rn(1.0f, step);
    if (__float_as_uint(inverse) >= kInfinityBits) inverse = 0.0f;
  }
};

// Two values of type T as int8, in the low bytes. The row must be finite.
template <class T>
__device__ inline void stepwise_pair(const float* v, const StepwiseScale<T>& scale,
                                     uint32_t* bytes) {
  float quotients[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float product = __fmul_rn(v[i], scale.inverse);
    const float residual = __fmaf_rn(-product, scale.step, v[i]);
    quotients[i] = __fmaf_rn(residual, scale.inverse, product);
  }
  round_pair<T>(quotients);
  bytes[0] = rounded_byte(fminf(fmaxf(quotients[0], -128.0f), 127.0f));
  bytes[1] = rounded_byte(fminf(fmaxf(quotients[1], -128.0f), 127.0f));
}

// quantized_word() of values of type T.
template <class T>
__device__ inline uint32_t stepwise_word(const float* v, const StepwiseScale<T>& scale) {
  uint32_t bytes[4];
  stepwise_pair<T>(v, scale, bytes);
  stepwise_pair<T>(v + 2, scale, bytes + 2);
  return joined_bytes(bytes[0], bytes[1], bytes[2], bytes[3]);
}

}  // namespace octet::cuda
