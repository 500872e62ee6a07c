// Ops on the rows of a matrix, the definitions. Inner values are f64, close to the exact ones.
#include <cmath>
#include <vector>

#include "backend/exact_silu.h"
#include "ref/elements.h"
#include "ref/ops.h"

namespace octet::ref {
namespace {

double load_or(const ConstTensorView& vector, int64_t j, double absent) {
  return vector.data == nullptr ? absent : load_at(vector, j);
}

// Row i of norm(x) * weight * (1 + scale).
std::vector<double> normed_row(const ConstTensorView& x, int64_t i, const RowNorm& how) {
  const int64_t channels = x.shape[1];
  const auto count = static_cast<double>(channels);
  std::vector<double> row(static_cast<size_t>(channels));
  double mean = 0, squares = 0;
  for (int64_t j = 0; j < channels; ++j) {
    row[static_cast<size_t>(j)] = load(x, i, j);
    mean += row[static_cast<size_t>(j)] / count;
  }
  if (how.kind == RowNorm::Kind::rms) mean = 0;
  for (double& value : row) {
    value -= mean;
    squares += value * value;
  }
  const double factor = 1 / std::sqrt(squares / count + how.eps);
  for (int64_t j = 0; j < channels; ++j) {
    row[static_cast<size_t>(j)] *=
        factor * load_or(how.weight, j, 1) * (1 + load_or(how.scale, j, 0));
  }
  return row;
}

double activated(double x, Activation how) {
  if (how == Activation::silu) return exact_silu(static_cast<float>(x));
  return x * (1 + std::erf(x / std::sqrt(2.0))) / 2;
}

}  // namespace

void norm(const ConstTensorView& x, const RowNorm& how, const TensorView& out) {
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    const std::vector<double> row = normed_row(x, i, how);
    for (int64_t j = 0; j < x.shape[1]; ++j) {
      store(out, i, j, static_cast<float>(row[static_cast<size_t>(j)]));
    }
  }
}

void norm_quantize(const ConstTensorView& x, const RowNorm& how,
                   const ActivationTransform& transform, const QTensor& out) {
  std::vector<float> values(static_cast<size_t>(x.shape.elements()));
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    const std::vector<double> row = normed_row(x, i, how);
    for (int64_t j = 0; j < x.shape[1]; ++j) {
      values[static_cast<size_t>(i * x.shape[1] + j)] =
          static_cast<float>(row[static_cast<size_t>(j)]);
    }
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  quantize_rows(ConstTensorView(bytes, DType::f32, x.shape), transform, out);
}

void swiglu(const ConstTensorView& gate, const ConstTensorView& up, const TensorView& out) {
  for (int64_t i = 0; i < out.shape[0]; ++i) {
    for (int64_t j = 0; j < out.shape[1]; ++j) {
      store(out, i, j, exact_silu(load(gate, i, j)) * load(up, i, j));
    }
  }
}

void activate(const ConstTensorView& x, Activation how, const TensorView& out) {
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    for (int64_t j = 0; j < x.shape[1]; ++j) {
      store(out, i, j, static_cast<float>(activated(load(x, i, j), how)));
    }
  }
}

void add(const TensorView& h, const ConstTensorView& x) {
  for (int64_t i = 0; i < h.shape[0]; ++i) {
    for (int64_t j = 0; j < h.shape[1]; ++j) store(h, i, j, load(h, i, j) + load(x, i, j));
  }
}

void add_gated(const TensorView& h, const ConstTensorView& x, const RowNorm& how,
               const ConstTensorView& gate) {
  for (int64_t i = 0; i < h.shape[0]; ++i) {
    const std::vector<double> row = normed_row(x, i, how);
    for (int64_t j = 0; j < h.shape[1]; ++j) {
      const double term =
          std::tanh(static_cast<double>(load_at(gate, j))) * row[static_cast<size_t>(j)];
      store(h, i, j, static_cast<float>(load(h, i, j) + term));
    }
  }
}

// The second norm reads h as it was rounded.
void add_gated_norm_quantize(const TensorView& h, const ConstTensorView& x, const RowNorm& how,
                             const ConstTensorView& gate, const RowNorm& next,
                             const ActivationTransform& transform, const QTensor& out) {
  add_gated(h, x, how, gate);
  norm_quantize(h, next, transform, out);
}

void embed(const ConstTensorView& table, std::span<const int32_t> rows, const TensorView& out) {
  for (size_t i = 0; i < rows.size(); ++i) {
    for (int64_t j = 0; j < table.shape[1]; ++j) {
      store(out, static_cast<int64_t>(i), j, load(table, rows[i], j));
    }
  }
}

// The product is rounded to f32 before its sine, as the model defines it: for large times the angle
// is a few milliradians from the exact product.
void sinusoids(std::span<const float> times, const ConstTensorView& frequencies,
               const TensorView& out) {
  const int64_t half = out.shape[1] / 2;
  for (size_t i = 0; i < times.size(); ++i) {
    for (int64_t j = 0; j < half; ++j) {
      const float angle = times[i] * frequencies.as<float>()[j];
      const auto row = static_cast<int64_t>(i);
      store(out, row, j, static_cast<float>(std::sin(static_cast<double>(angle))));
      store(out, row, half + j, static_cast<float>(std::cos(static_cast<double>(angle))));
    }
  }
}

void euler_step(const EulerStep& step) {
  for (int64_t i = 0; i < step.z.shape[0]; ++i) {
    for (int64_t j = 0; j < step.z.shape[1]; ++j) {
      float v = step.branches[0].weight * load(step.branches[0].velocity, i, j);
      for (size_t b = 1; b < step.count; ++b) {
        v = v + step.branches[b].weight * load(step.branches[b].velocity, i, j);
      }
      const float z = load(step.z, i, j) + step.delta * v;
      store(step.velocity, i, j, v);
      store(step.z, i, j, z);
      if (step.rounds()) store(step.rounded, i, j, z);
      if (!std::isfinite(z)) *step.overflow.as<int32_t>() = 1;
    }
  }
}

}  // namespace octet::ref
