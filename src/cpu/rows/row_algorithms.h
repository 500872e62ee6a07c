// The row operations, written once in the primitives of a Vec (simd/vec_*.h).
//
// Included by one file per instruction set. Everything is in an anonymous namespace: see
// vec_scalar.h for why. Tails are done by VecScalar, whose bits are the same.
#pragma once

#include "backend/exact_silu.h"
#include "cpu/rows/row_ops.h"
#include "cpu/simd/vec_scalar.h"

namespace {

using octet::DType;
using octet::cpu::ClipRatios;
using octet::cpu::EpilogueTile;
using octet::cpu::RowTransform;

// Calls step(vec, j) for each j in [0, count), kWidth at a time and the tail one by one; `vec` is a
// Vec object that only carries its type.
template <class V, class Step>
[[gnu::always_inline]] inline void for_each_vec(int64_t count, Step step) {
  int64_t j = 0;
  for (; j + V::kWidth <= count; j += V::kWidth) step(V{}, j);
  for (; j < count; ++j) step(VecScalar{}, j);
}

// The same for steps that may be repeated: in place of a tail, one more vector that ends at the
// end. Half a tile of 48 columns would leave a third of its work to the tail.
template <class V, class Step>
[[gnu::always_inline]] inline void for_each_vec_overlapping(int64_t count, Step step) {
  if (count < V::kWidth) {
    for_each_vec<VecScalar>(count, step);
    return;
  }
  int64_t j = 0;
  for (; j + V::kWidth <= count; j += V::kWidth) step(V{}, j);
  if (j < count) step(V{}, count - V::kWidth);
}

// The rotation's butterfly among elements `distance` apart, where distance >= V::kWidth.
template <class V>
[[gnu::always_inline]] inline void butterflies_apart(float* x, int64_t k, int64_t distance) {
  for (int64_t base = 0; base < k; base += 4 * distance) {
    for (int64_t i = base; i < base + distance; i += V::kWidth) {
      const auto x0 = V::load(x + i);
      const auto x1 = V::load(x + i + distance);
      const auto x2 = V::load(x + i + 2 * distance);
      const auto x3 = V::load(x + i + 3 * distance);
      const auto s = V::add(x0, x1);
      const auto d = V::sub(x0, x1);
      const auto t = V::add(x2, x3);
      const auto u = V::sub(x2, x3);
      V::store(x + i, V::add(s, u));
      V::store(x + i + distance, V::sub(s, u));
      V::store(x + i + 2 * distance, V::add(t, d));
      V::store(x + i + 3 * distance, V::sub(t, d));
    }
  }
}

// The butterflies closer together than a vector is wide; one overload per Vec that has them.
// Returns the first distance that is left to butterflies_apart.
template <class V>
int64_t near_butterflies(float* x, int64_t k, int64_t group);

// Rotation, see ref/quantize.cpp for its definition: lowest digit first, the factor last. The
// factor is left to the caller, who multiplies it in on the way.
template <class V>
[[gnu::always_inline]] inline float rotate(float* x, int64_t k, int64_t group) {
  int64_t distance = near_butterflies<V>(x, k, group);
  for (; distance < group; distance *= 4) butterflies_apart<V>(x, k, distance);
  float factor = 1.0f;
  for (int64_t span = 1; span < group; span *= 4) factor *= 0.5f;
  return factor;
}

// x rounded to that type.
template <class T, class V>
[[gnu::always_inline]] inline typename V::F rounded_to(typename V::F x) {
  T values[V::kWidth];
  V::store(values, x);
  return V::load(values);
}

// Leaves the transformed row in scratch, and returns the bits of its largest magnitude (see
// VecScalar::max_magnitude).
template <class V, bool kStepwise = false, class T>
[[gnu::always_inline]] inline uint32_t transform_row(const T* x, int64_t k,
                                                     const RowTransform& transform,
                                                     float* scratch) {
  float factor = 1.0f;
  if (transform.group > 0) {
    for_each_vec<V>(k, [&](auto v, int64_t j) { v.store(scratch + j, v.load(x + j)); });
    factor = rotate<V>(scratch, k, transform.group);
  }
  const bool smooth = transform.smooth != nullptr;
  const bool rotated = transform.group > 0;

  // One pass that finishes the transform, keeps the row in scratch and finds its largest magnitude.
  auto bits = V::zero_bits();
  uint32_t tail_bits = 0;
  const auto pass = [&](auto v, int64_t j) {
    auto value = rotated ? v.mul(v.load(scratch + j), v.set(factor)) : v.load(x + j);
    if (smooth) value = v.mul(value, v.load(transform.smooth + j));
    if constexpr (kStepwise) value = rounded_to<T, decltype(v)>(value);
    v.store(scratch + j, value);
    if constexpr (decltype(v)::kWidth == V::kWidth) {
      bits = V::max_magnitude(bits, value);
    } else {
      tail_bits = VecScalar::max_magnitude(tail_bits, value);
    }
  };
  for_each_vec<V>(k, pass);
  const uint32_t vector_bits = V::reduce(bits);
  return vector_bits > tail_bits ? vector_bits : tail_bits;
}

inline bool is_finite(float x) {
  return (__builtin_bit_cast(uint32_t, x) & 0x7fffffffu) < 0x7f800000u;
}

// Handles rows that have no scale; returns false for a row that has one.
inline bool quantized_to_zero(float amax, int64_t k, int8_t* q, float* scale) {
  if (is_finite(amax) && is_finite(127.0f / amax)) return false;
  *scale = is_finite(amax) ? 0.0f : __builtin_nanf("");
  for (int64_t j = 0; j < k; ++j) q[j] = 0;
  return true;
}

template <class V, class T>
[[gnu::always_inline]] inline void quantize_typed(const T* x, int64_t k,
                                                  const RowTransform& transform, float* scratch,
                                                  int8_t* q, float* scale) {
  const auto amax = __builtin_bit_cast(float, transform_row<V>(x, k, transform, scratch));
  if (quantized_to_zero(amax, k, q, scale)) return;
  const float inverse = 127.0f / amax;
  *scale = amax / 127.0f;
  for_each_vec<V>(
      k, [&](auto v, int64_t j) { v.store(q + j, v.mul(v.load(scratch + j), v.set(inverse))); });
}

template <class V>
[[gnu::always_inline]] inline typename V::F clamp_to_codes(typename V::F scaled) {
  return V::min(V::max(scaled, V::set(-127.0f)), V::set(127.0f));
}

// See store_row_stepwise in ref/quantize.cpp.
template <class V, class T>
[[gnu::always_inline]] inline void quantize_stepwise(const T* x, int64_t k,
                                                     const RowTransform& transform, float* scratch,
                                                     int8_t* q, float* scale) {
  const auto amax = __builtin_bit_cast(float, transform_row<V, true>(x, k, transform, scratch));
  if (quantized_to_zero(amax, k, q, scale)) return;
  *scale = amax / 127.0f;
  const float step = rounded_to<T, VecScalar>(*scale);
  const float inverse = 1.0f / step;
  if (!is_finite(inverse)) {
    quantized_to_zero(0.0f, k, q, scale);
    return;
  }
  for_each_vec<V>(k, [&](auto v, int64_t j) {
    using W = decltype(v);
    const auto value = W::load(scratch + j);
    const auto product = W::mul(value, W::set(inverse));
    const auto residual = W::fnma(product, W::set(step), value);
    const auto quotient = W::fma(residual, W::set(inverse), product);
    const auto code = W::max(rounded_to<T, W>(quotient), W::set(transform.lowest_code));
    W::store(q + j, W::min(code, W::set(127.0f)));
  });
}

// The sum of squares of (x * inverse - its code) in units of 1/256: see ref/quantize.cpp. Sums that
// put the ulp at 1, and at 1/256, do the two roundings; the second leaves its integer in the low
// bits.
template <class V>
int64_t squared_residuals(const float* x, int64_t k, float inverse) {
  constexpr float kUlpIsOne = 12582912.0f;    // 1.5 * 2^23
  constexpr float kUlpIsFraction = 49152.0f;  // 1.5 * 2^15
  auto acc = V::zero_acc();
  int64_t tail = 0;
  for_each_vec<V>(k, [&](auto v, int64_t j) {
    using W = decltype(v);
    const auto scaled = W::mul(W::load(x + j), W::set(inverse));
    const auto shifted = W::add(clamp_to_codes<W>(scaled), W::set(kUlpIsOne));
    const auto residual = W::sub(scaled, W::sub(shifted, W::set(kUlpIsOne)));
    const auto fraction = W::bits(W::add(residual, W::set(kUlpIsFraction)));
    const auto whole = W::sub_bits(fraction, W::bits(W::set(kUlpIsFraction)));
    if constexpr (W::kWidth == V::kWidth) {
      acc = V::add_squares(acc, whole);
    } else {
      tail = VecScalar::add_squares(tail, whole);
    }
  });
  return V::total(acc) + tail;
}

// Gives up once the error has reached `enough`: it only grows, and its roundings keep the order.
template <class V>
[[gnu::always_inline]] inline double squared_error(const float* x, int64_t k, float inverse,
                                                   double scale, double enough) {
  constexpr int64_t kChunk = 512;
  int64_t sum = 0;
  double error = 0;
  for (int64_t j = 0; j < k && error < enough; j += kChunk) {
    sum += squared_residuals<V>(x + j, k - j < kChunk ? k - j : kChunk, inverse);
    error = static_cast<double>(sum) * scale * scale;
  }
  return error;
}

template <class V, class T>
[[gnu::always_inline]] inline void quantize_searched_typed(const T* x, int64_t k,
                                                           const RowTransform& transform,
                                                           const ClipRatios& ratios, float* scratch,
                                                           int8_t* q, float* scale) {
  const auto amax = __builtin_bit_cast(float, transform_row<V>(x, k, transform, scratch));
  if (quantized_to_zero(amax, k, q, scale)) return;
  float best_limit = amax;
  double smallest = __builtin_inf();
  // A single ratio needs no errors.
  for (int i = 0; i < ratios.count && ratios.count > 1; ++i) {
    const float limit = amax * ratios.values[i];
    const float inverse = 127.0f / limit;
    if (!is_finite(inverse)) continue;
    const double error = squared_error<V>(scratch, k, inverse, limit / 127.0f, smallest);
    if (error < smallest) {
      smallest = error;
      best_limit = limit;
    }
  }
  const float inverse = 127.0f / best_limit;
  *scale = best_limit / 127.0f;
  for_each_vec<V>(k, [&](auto v, int64_t j) {
    const auto scaled = v.mul(v.load(scratch + j), v.set(inverse));
    v.store(q + j, clamp_to_codes<decltype(v)>(scaled));
  });
}

// Calls use(x) with x as a pointer to its type: f32, bf16 or f16.
template <class Use>
[[gnu::always_inline]] inline void with_float_type(const void* x, DType dtype, Use use) {
  switch (dtype) {
    case DType::bf16: use(static_cast<const octet::bf16_t*>(x)); break;
    case DType::f16: use(static_cast<const octet::f16_t*>(x)); break;
    default: use(static_cast<const float*>(x));
  }
}

template <class V>
void quantize_row(const void* x, DType dtype, int64_t k, const RowTransform& transform,
                  float* scratch, int8_t* q, float* scale) {
  with_float_type(x, dtype, [&](const auto* row) {
    if constexpr (sizeof *row == 2) {
      if (transform.stepwise) return quantize_stepwise<V>(row, k, transform, scratch, q, scale);
    }
    quantize_typed<V>(row, k, transform, scratch, q, scale);
  });
}

template <class V>
void quantize_row_searched(const void* x, DType dtype, int64_t k, const RowTransform& transform,
                           const ClipRatios& ratios, float* scratch, int8_t* q, float* scale) {
  with_float_type(x, dtype, [&](const auto* row) {
    quantize_searched_typed<V>(row, k, transform, ratios, scratch, q, scale);
  });
}

template <class V>
void dequantize_row(const int8_t* q, float scale, int64_t k, void* out, DType dtype) {
  const auto typed = [&](auto* to) {
    for_each_vec<V>(
        k, [&](auto v, int64_t j) { v.store(to + j, v.mul(v.load(q + j), v.set(scale))); });
  };
  switch (dtype) {
    case DType::bf16: typed(static_cast<octet::bf16_t*>(out)); break;
    case DType::f16: typed(static_cast<octet::f16_t*>(out)); break;
    default: typed(static_cast<float*>(out));
  }
}

template <class V, class T, bool kBias>
[[gnu::always_inline]] inline void epilogue_typed(const EpilogueTile& tile) {
  for (int64_t i = 0; i < tile.rows; ++i) {
    const int32_t* acc = tile.acc + i * tile.acc_stride;
    const float row_scale = tile.row_scale[i];
    auto* out = reinterpret_cast<T*>(tile.out + i * tile.out_stride_bytes);
    for_each_vec<V>(tile.columns, [&](auto v, int64_t j) {
      auto y = v.mul(v.mul(v.load(acc + j), v.set(row_scale)), v.load(tile.col_scale + j));
      if constexpr (kBias) y = v.add(y, v.load(tile.bias + j));
      v.store(out + j, y);
    });
  }
}

// Gates are in even columns, the values they multiply in odd ones.
template <class V, class T>
[[gnu::always_inline]] inline void swiglu_typed(const EpilogueTile& tile) {
  for (int64_t i = 0; i < tile.rows; ++i) {
    const int32_t* acc = tile.acc + i * tile.acc_stride;
    const float row_scale = tile.row_scale[i];
    auto* out = reinterpret_cast<T*>(tile.out + i * tile.out_stride_bytes);
    for_each_vec_overlapping<V>(tile.out_columns, [&](auto v, int64_t j) {
      using W = decltype(v);
      const auto scaled = [&](int64_t column) {
        const auto value = W::mul(W::load(acc + column), W::set(row_scale));
        return W::mul(value, W::load(tile.col_scale + column));
      };
      const auto low = scaled(2 * j);
      const auto high = scaled(2 * j + W::kWidth);
      W::store(out + j, W::mul(octet::exact_silu<W>(W::even(low, high)), W::odd(low, high)));
    });
  }
}

template <class V, class T>
[[gnu::always_inline]] inline void epilogue_of_type(const EpilogueTile& tile) {
  static_assert(octet::kFusionCount == 3, "a new fusion needs its epilogue here");
  switch (tile.fusion) {
    case octet::Fusion::none: epilogue_typed<V, T, false>(tile); break;
    case octet::Fusion::bias: epilogue_typed<V, T, true>(tile); break;
    case octet::Fusion::swiglu: swiglu_typed<V, T>(tile); break;
  }
}

template <class V>
void epilogue_tile(const EpilogueTile& tile) {
  switch (tile.dtype) {
    case DType::bf16: epilogue_of_type<V, octet::bf16_t>(tile); break;
    case DType::f16: epilogue_of_type<V, octet::f16_t>(tile); break;
    case DType::i32:
      for (int64_t i = 0; i < tile.rows; ++i) {
        __builtin_memcpy(tile.out + i * tile.out_stride_bytes, tile.acc + i * tile.acc_stride,
                         static_cast<size_t>(tile.columns) * sizeof(int32_t));
      }
      break;
    default: epilogue_of_type<V, float>(tile);
  }
}

}  // namespace
