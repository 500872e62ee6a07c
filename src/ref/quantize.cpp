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

}  // namespace

void quantize_rows(const ConstTensorView& x, const ActivationTransform& transform,
                   const QTensor& out) {
  const int64_t k = x.shape[1];
  std::vector<float> row(static_cast<size_t>(k));
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    for (int64_t j = 0; j < k; ++j) {
      row[static_cast<size_t>(j)] = load(x, i, j);
      if (transform.kind == Transform::smooth) {
        row[static_cast<size_t>(j)] *= transform.smooth.as<float>()[j];
      }
    }
    if (transform.kind == Transform::rotate) rotate(row, transform.group);

    float amax = 0.0f;
    bool finite = true;
    for (const float value : row) {
      finite = finite && std::isfinite(value);
      amax = std::fmax(amax, std::fabs(value));
    }
    float scale = amax / 127.0f;
    float inverse = 127.0f / amax;
    if (!finite) {
      scale = std::numeric_limits<float>::quiet_NaN();
      inverse = 0.0f;
    } else if (!std::isfinite(inverse)) {
      scale = 0.0f;
      inverse = 0.0f;
    }
    out.scales.as<float>()[i] = scale;
    int8_t* q = out.values.row<int8_t>(i);
    for (int64_t j = 0; j < k; ++j) {
      const float value = finite ? row[static_cast<size_t>(j)] : 0.0f;
      q[j] = static_cast<int8_t>(std::nearbyint(value * inverse));
    }
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

}  // namespace octet::ref
