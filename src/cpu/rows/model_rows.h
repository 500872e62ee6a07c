// The row operations between a model's linears, written once in the primitives of a Vec, like those
// of row_algorithms.h. Those with sums of their own (norms, softmax) may differ between instruction
// sets by the rounding of these sums; the others give the same bits everywhere.
//
// Included by one file per instruction set; everything is in an anonymous namespace.
#pragma once

#include "backend/exact_silu.h"
#include "cpu/rows/row_algorithms.h"
#include "cpu/rows/row_ops.h"
#include "cpu/simd/vec_scalar.h"

namespace {

using octet::cpu::AffineRow;
using octet::cpu::HeadAngles;
using octet::cpu::NormRow;

// Calls body(p) with p the pointer as its element type, f32 or bf16.
template <class Body>
[[gnu::always_inline]] inline void with_type(const void* x, DType dtype, Body body) {
  if (dtype == DType::bf16) {
    body(static_cast<const octet::bf16_t*>(x));
  } else {
    body(static_cast<const float*>(x));
  }
}
template <class Body>
[[gnu::always_inline]] inline void with_type(void* x, DType dtype, Body body) {
  if (dtype == DType::bf16) {
    body(static_cast<octet::bf16_t*>(x));
  } else {
    body(static_cast<float*>(x));
  }
}

template <class V>
[[gnu::always_inline]] inline double sum_of_lanes(typename V::F x) {
  float lanes[V::kWidth];
  V::store(lanes, x);
  double total = 0;
  for (const float lane : lanes) total += static_cast<double>(lane);
  return total;
}

// The sum over j of what add(vec, sum, j) adds. Up to 16 terms at a time are added in f32, and
// these sums in f64: a row may be 50,000 channels long.
template <class V, class Add>
[[gnu::always_inline]] inline double sum_over(int64_t count, Add add) {
  constexpr int kAccumulators = 4;
  constexpr int64_t kBlock = 16 * kAccumulators * V::kWidth;
  double total = 0;
  int64_t j = 0;
  while (j + kAccumulators * V::kWidth <= count) {
    typename V::F acc[kAccumulators] = {V::set(0), V::set(0), V::set(0), V::set(0)};
    const int64_t end = count - j < kBlock ? count : j + kBlock;
    for (; j + kAccumulators * V::kWidth <= end; j += kAccumulators * V::kWidth) {
#pragma GCC unroll 4
      for (int i = 0; i < kAccumulators; ++i) acc[i] = add(V{}, acc[i], j + i * V::kWidth);
    }
    total += sum_of_lanes<V>(V::add(V::add(acc[0], acc[1]), V::add(acc[2], acc[3])));
  }
  auto acc = V::set(0);
  for (; j + V::kWidth <= count; j += V::kWidth) acc = add(V{}, acc, j);
  total += sum_of_lanes<V>(acc);
  for (; j < count; ++j) total += static_cast<double>(add(VecScalar{}, 0.0f, j));
  return total;
}

template <class V>
void norm_row(const void* x, DType dtype, int64_t channels, const NormRow& how, float* scratch,
              void* out, DType out_dtype) {
  const auto count = static_cast<double>(channels);
  double squares = 0;
  with_type(x, dtype, [&](const auto* from) {
    float mean = 0;
    if (how.centered) {
      mean = static_cast<float>(
          sum_over<V>(channels,
                      [&](auto v, auto sum, int64_t j) { return v.add(sum, v.load(from + j)); }) /
          count);
    }
    squares = sum_over<V>(channels, [&](auto v, auto sum, int64_t j) {
      auto value = v.load(from + j);
      if (how.centered) value = v.sub(value, v.set(mean));
      v.store(scratch + j, value);
      return v.add(sum, v.mul(value, value));
    });
  });
  const auto factor =
      static_cast<float>(1 / __builtin_sqrt(squares / count + static_cast<double>(how.eps)));
  with_type(out, out_dtype, [&](auto* to) {
    for_each_vec<V>(channels, [&](auto v, int64_t j) {
      auto value = v.mul(v.load(scratch + j), v.set(factor));
      if (how.gain != nullptr) value = v.mul(value, v.load(how.gain + j));
      v.store(to + j, value);
    });
  });
}

template <class V>
void rotate_head(void* x, DType dtype, const HeadAngles& how) {
  const int64_t half = how.half;
  with_type(x, dtype, [&](auto* head) {
    const double squares = sum_over<V>(2 * half, [&](auto v, auto sum, int64_t j) {
      const auto value = v.load(head + j);
      return v.add(sum, v.mul(value, value));
    });
    const double mean = squares / static_cast<double>(2 * half);
    const auto factor = static_cast<float>(1 / __builtin_sqrt(mean + static_cast<double>(how.eps)));
    for_each_vec<V>(half, [&](auto v, int64_t j) {
      const auto normed = [&](int64_t at) {
        return v.mul(v.mul(v.load(head + at), v.set(factor)), v.load(how.weight + at));
      };
      const auto low = normed(j), high = normed(j + half);
      const auto c = v.load(how.cos + j), s = v.load(how.sin + j);
      v.store(head + j, v.sub(v.mul(low, c), v.mul(high, s)));
      v.store(head + j + half, v.add(v.mul(high, c), v.mul(low, s)));
    });
  });
}

template <class V>
void swiglu_row(const void* gate, const void* up, DType dtype, int64_t count, void* out) {
  with_type(out, dtype, [&]<class T>(T* to) {
    const auto* gates = static_cast<const T*>(gate);
    const auto* ups = static_cast<const T*>(up);
    for_each_vec<V>(count, [&](auto v, int64_t j) {
      using W = decltype(v);
      W::store(to + j, W::mul(octet::exact_silu<W>(W::load(gates + j)), W::load(ups + j)));
    });
  });
}

template <class V>
void silu_row(const void* x, DType dtype, int64_t count, void* out) {
  with_type(out, dtype, [&]<class T>(T* to) {
    const auto* from = static_cast<const T*>(x);
    for_each_vec<V>(count, [&](auto v, int64_t j) {
      using W = decltype(v);
      W::store(to + j, octet::exact_silu<W>(W::load(from + j)));
    });
  });
}

template <class V>
void affine_row(const void* x, DType dtype, int64_t count, const AffineRow& how, void* out) {
  with_type(out, dtype, [&]<class T>(T* to) {
    const auto* from = static_cast<const T*>(x);
    for_each_vec<V>(count, [&](auto v, int64_t j) {
      using W = decltype(v);
      const auto apart = W::sub(W::load(from + j), W::load(how.mean + j));
      const auto y = W::add(W::mul(apart, W::load(how.gain + j)), W::load(how.bias + j));
      W::store(to + j, how.silu ? octet::exact_silu<W>(y) : y);
    });
  });
}

template <class V>
void add_row(void* h, DType dtype, const void* x, DType x_dtype, int64_t count) {
  with_type(h, dtype, [&](auto* to) {
    with_type(x, x_dtype, [&](const auto* from) {
      for_each_vec<V>(count, [&](auto v, int64_t j) {
        v.store(to + j, v.add(v.load(to + j), v.load(from + j)));
      });
    });
  });
}

template <class V>
float largest_of(const float* x, int64_t count) {
  float result = x[0];
  int64_t j = 0;
  if (count >= V::kWidth) {
    auto largest = V::load(x);
    for (j = V::kWidth; j + V::kWidth <= count; j += V::kWidth) {
      largest = V::max(largest, V::load(x + j));
    }
    float lanes[V::kWidth];
    V::store(lanes, largest);
    for (const float lane : lanes) result = lane > result ? lane : result;
  }
  for (; j < count; ++j) result = x[j] > result ? x[j] : result;
  return result;
}

// 2^z for z <= 0, by the steps of exact_silu.h. The clamp keeps a NaN: it is max()'s second
// operand. The exponent is added to bits that a NaN's payload could carry into a number, so z - z,
// which is zero or NaN, is added last.
template <class V>
[[gnu::always_inline]] inline typename V::F power_of_two(typename V::F exponent) {
  const auto z = V::max(V::set(-126.0f), exponent);
  const auto power = octet::exact_power_of_two<V>(z);
  return V::add(power, V::sub(z, z));
}

template <class V>
double exponentials_of(const float* x, int64_t count, float largest, float factor, void* out,
                       DType out_dtype) {
  double total = 0;
  with_type(out, out_dtype, [&](auto* to) {
    total = sum_over<V>(count, [&](auto v, auto sum, int64_t j) {
      using W = decltype(v);
      const auto apart = W::sub(W::load(x + j), W::set(largest));
      const auto power = power_of_two<W>(W::mul(apart, W::set(factor)));
      W::store(to + j, power);
      return W::add(sum, power);
    });
  });
  return total;
}

template <class V>
void scale_row(const float* x, float factor, int64_t count, void* out, DType out_dtype) {
  with_type(out, out_dtype, [&](auto* to) {
    for_each_vec<V>(
        count, [&](auto v, int64_t j) { v.store(to + j, v.mul(v.load(x + j), v.set(factor))); });
  });
}

template <class V>
void rescale_and_add_row(float* acc, float factor, const float* x, int64_t count) {
  for_each_vec<V>(count, [&](auto v, int64_t j) {
    v.store(acc + j, v.add(v.mul(v.load(acc + j), v.set(factor)), v.load(x + j)));
  });
}

}  // namespace
