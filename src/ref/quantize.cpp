// Row quantization, the definition. Every other implementation must give the same bits.
#include <cmath>
#include <limits>
#include <vector>

#include "ref/elements.h"
#include "ref/ops.h"

namespace octet::ref {
namespace {

// x := x H within consecutive groups, H[i][j] = group^(-1/2) * product over the base-4 digits of
// (-1 where the digits add up to 3, +1 elsewhere). As one butterfly per digit, the lowest digit
// first, each with exactly these sums; the factor is a power of two and is applied last.
void rotate(std::vector<float>& row, int64_t group) {
  const auto k = static_cast<int64_t>(row.size());
  float factor = 1.0f;
  for (int64_t distance = 1; distance < group; distance *= 4) {
    factor *= 0.5f;
    for (int64_t base = 0; base < k; base += 4 * distance) {
      for (int64_t i = base; i < base + distance; ++i) {
        float* x = row.data() + i;
        const float s = x[0] + x[distance];
        const float d = x[0] - x[distance];
        const float t = x[2 * distance] + x[3 * distance];
        const float u = x[2 * distance] - x[3 * distance];
        x[0] = s + u;
        x[distance] = s - u;
        x[2 * distance] = t + d;
        x[3 * distance] = t - d;
      }
    }
  }
  for (float& value : row) value *= factor;
}

// x as a value of that type.
float rounded_to(DType dtype, float x) {
  switch (dtype) {
    case DType::bf16: return to_f32(from_f32<bf16_t>(x));
    case DType::f16: return to_f32(from_f32<f16_t>(x));
    default: return x;
  }
}

std::vector<float> transformed_row(const ConstTensorView& x, int64_t i,
                                   const ActivationTransform& transform) {
  std::vector<float> row(static_cast<size_t>(x.shape[1]));
  for (int64_t j = 0; j < x.shape[1]; ++j) {
    row[static_cast<size_t>(j)] = load(x, i, j);
    if (transform.kind == Transform::smooth) {
      row[static_cast<size_t>(j)] *= transform.smooth.as<float>()[j];
    }
  }
  if (transform.kind == Transform::rotate) rotate(row, transform.group);
  return row;
}

// Scale and inverse scale of a row: limit / 127 and 127 / limit, where the limit is amax or less.
struct RowScale {
  float scale;
  float inverse;  // 0 if all codes are 0

  RowScale(float limit, bool finite) : scale(limit / 127.0f), inverse(127.0f / limit) {
    if (!finite) {
      scale = std::numeric_limits<float>::quiet_NaN();
      inverse = 0.0f;
    } else if (!std::isfinite(inverse)) {
      scale = 0.0f;
      inverse = 0.0f;
    }
  }
};

bool all_finite(const std::vector<float>& row) {
  for (const float value : row) {
    if (!std::isfinite(value)) return false;
  }
  return true;
}

float largest_magnitude(const std::vector<float>& row) {
  float amax = 0.0f;
  for (const float value : row) amax = std::fmax(amax, std::fabs(value));
  return amax;
}

// Only values beyond the limit are clamped: with the row's amax as the limit, none.
float code_of(float scaled) {
  return std::fmin(std::fmax(std::nearbyint(scaled), -127.0f), 127.0f);
}

void store_row(const std::vector<float>& row, bool finite, const RowScale& with, int64_t i,
               const QTensor& out) {
  out.scales.as<float>()[i] = with.scale;
  int8_t* q = out.values.row<int8_t>(i);
  for (size_t j = 0; j < row.size(); ++j) {
    const float value = finite ? row[j] : 0.0f;  // NaN * 0 is not 0
    q[j] = static_cast<int8_t>(code_of(value * with.inverse));
  }
}

// The same for a row of bf16 or f16, with its scale and the quotients rounded to that type; the
// stored scale is not rounded. A quotient is a product with the inverse and its correction: once
// rounded, it equals that of a division. It may exceed 127: rounding to bf16 may have lost 1/256 of
// the scale, and more of a subnormal one. So codes may be -128, where the GEMM can take them.
void store_row_stepwise(const std::vector<float>& row, bool finite, DType dtype, int64_t i,
                        const QTensor& out) {
  RowScale with(largest_magnitude(row), finite);
  const float step = rounded_to(dtype, with.scale);
  if (with.inverse != 0.0f) with.inverse = 1.0f / step;
  if (!std::isfinite(with.inverse)) with = RowScale(0.0f, finite);
  out.scales.as<float>()[i] = with.scale;
  int8_t* q = out.values.row<int8_t>(i);
  for (size_t j = 0; j < row.size(); ++j) {
    float quotient = 0.0f;
    if (with.inverse != 0.0f) {
      const float product = row[j] * with.inverse;
      quotient = std::fma(std::fma(-product, step, row[j]), with.inverse, product);
    }
    const float code = std::nearbyint(rounded_to(dtype, quotient));
    q[j] = static_cast<int8_t>(std::fmin(std::fmax(code, -128.0f), 127.0f));
  }
}

// The squared distance of a row from its codes. Residuals are whole numbers of 1/256 steps: their
// squares add up exactly, in any order. They are below 2^19 (127 / kMinClipRatio steps of 256).
double squared_error(const std::vector<float>& row, const RowScale& with) {
  int64_t sum = 0;
  for (const float value : row) {
    const float scaled = value * with.inverse;
    const auto residual = static_cast<int64_t>(std::nearbyint((scaled - code_of(scaled)) * 256.0f));
    sum += residual * residual;
  }
  const auto scale = static_cast<double>(with.scale);
  return static_cast<double>(sum) * scale * scale;
}

}  // namespace

void quantize_rows(const ConstTensorView& x, const ActivationTransform& transform,
                   const QTensor& out) {
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    std::vector<float> row = transformed_row(x, i, transform);
    const bool stepwise = transform.stepwise && x.dtype != DType::f32;
    if (stepwise) {
      for (float& value : row) value = rounded_to(x.dtype, value);
    }
    const bool finite = all_finite(row);
    if (stepwise) {
      store_row_stepwise(row, finite, x.dtype, i, out);
    } else {
      store_row(row, finite, RowScale(largest_magnitude(row), finite), i, out);
    }
  }
}

void quantize_rows_searched(const ConstTensorView& x, const ActivationTransform& transform,
                            std::span<const float> ratios, const QTensor& out) {
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    const std::vector<float> row = transformed_row(x, i, transform);
    const bool finite = all_finite(row);
    const float amax = largest_magnitude(row);
    RowScale best(amax, finite);
    if (best.inverse != 0.0f) {
      double smallest = squared_error(row, best);
      for (const float ratio : ratios.subspan(1)) {
        const RowScale clipped(amax * ratio, finite);
        // amax may have a scale while a fraction of it is too small for one.
        if (clipped.inverse == 0.0f) continue;
        const double error = squared_error(row, clipped);
        if (error < smallest) {
          smallest = error;
          best = clipped;
        }
      }
    }
    store_row(row, finite, best, i, out);
  }
}

void dequantize_rows(const QTensor& q, const TensorView& out) {
  for (int64_t i = 0; i < q.rows(); ++i) {
    const float scale = q.scales.as<float>()[i];
    for (int64_t j = 0; j < q.k(); ++j) {
      store(out, i, j, static_cast<float>(q.values.row<int8_t>(i)[j]) * scale);
    }
  }
}

void convert(const ConstTensorView& x, const TensorView& out, const ConstTensorView& row_scale) {
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    for (int64_t j = 0; j < x.shape[1]; ++j) {
      const float value = load(x, i, j);
      store(out, i, j, row_scale.data == nullptr ? value : value * row_scale.as<float>()[i]);
    }
  }
}

}  // namespace octet::ref
