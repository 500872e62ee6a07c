// Ops on the rows of a matrix: threads share the rows, and a RowOps function handles each.
#include <cmath>
#include <cstring>

#include "cpu/ops/ops.h"
#include "cpu/ops/row_tasks.h"

namespace octet::cpu {
namespace {

ThreadScratch gain_scratch;  // of the calling thread, read by all
ThreadScratch row_scratch;   // one row in f32
ThreadScratch code_scratch;  // and one for the row quantizer

// The factor of channel j of a normed row, in f32. `gate` may have no data.
const float* gain_of(const RowNorm& how, const ConstTensorView& gate, int64_t channels) {
  if (how.weight.data == nullptr && how.scale.data == nullptr && gate.data == nullptr) {
    return nullptr;
  }
  float* gain = floats(gain_scratch, channels);
  for (int64_t j = 0; j < channels; ++j) {
    double product = 1;
    if (how.weight.data != nullptr) product = static_cast<double>(how.weight.as<float>()[j]);
    if (how.scale.data != nullptr) product *= 1 + static_cast<double>(load_at(how.scale, j));
    if (gate.data != nullptr) product *= std::tanh(static_cast<double>(load_at(gate, j)));
    gain[j] = static_cast<float>(product);
  }
  return gain;
}

NormRow norm_row(const RowNorm& how, const ConstTensorView& gate, int64_t channels) {
  return {how.kind == RowNorm::Kind::layer, how.eps, gain_of(how, gate, channels)};
}

RowTransform row_transform(const Workers& workers, const ActivationTransform& transform) {
  RowTransform result;
  if (transform.kind == Transform::smooth) result.smooth = transform.smooth.as<float>();
  if (transform.kind == Transform::rotate) result.group = transform.group;
  result.stepwise = transform.stepwise;
  // The only GEMM that cannot take -128, see micro_x86_avx2.cpp.
  if (workers.rows.simd != Simd::avx2) result.lowest_code = -128;
  return result;
}

template <class T>
void gelu_row(const T* x, int64_t count, T* out) {
  for (int64_t j = 0; j < count; ++j) {
    const float value = to_f32(x[j]);
    out[j] = from_f32<T>(value * (1 + std::erf(value * 0x1.6a09e6p-1f)) * 0.5f);  // 1 / sqrt(2)
  }
}

}  // namespace

void quantize_rows(const Workers& workers, const ConstTensorView& x,
                   const ActivationTransform& transform, const QTensor& out) {
  const int64_t channels = x.shape[1];
  const RowTransform to_do = row_transform(workers, transform);
  for_each_row(workers.pool, x.shape[0], channels, [&](int64_t i) {
    workers.rows.quantize(row_bytes(x, i), x.dtype, channels, to_do, floats(row_scratch, channels),
                          out.values.row<int8_t>(i), out.scales.as<float>() + i);
  });
}

void quantize_rows_searched(const Workers& workers, const ConstTensorView& x,
                            const ActivationTransform& transform, std::span<const float> ratios,
                            const QTensor& out) {
  const int64_t channels = x.shape[1];
  const RowTransform to_do = row_transform(workers, transform);
  const ClipRatios clip{ratios.data(), static_cast<int>(ratios.size())};
  for_each_row(workers.pool, x.shape[0], channels * clip.count, [&](int64_t i) {
    workers.rows.quantize_searched(row_bytes(x, i), x.dtype, channels, to_do, clip,
                                   floats(row_scratch, channels), out.values.row<int8_t>(i),
                                   out.scales.as<float>() + i);
  });
}

void dequantize_rows(const Workers& workers, const QTensor& q, const TensorView& out) {
  for_each_row(workers.pool, q.rows(), q.k(), [&](int64_t i) {
    workers.rows.dequantize(q.values.row<int8_t>(i), q.scales.as<float>()[i], q.k(),
                            row_bytes(out, i), out.dtype);
  });
}

void norm(const Workers& workers, const ConstTensorView& x, const RowNorm& how,
          const TensorView& out) {
  const int64_t channels = x.shape[1];
  const NormRow row = norm_row(how, {}, channels);
  for_each_row(workers.pool, x.shape[0], channels, [&](int64_t i) {
    workers.rows.norm(row_bytes(x, i), x.dtype, channels, row, floats(row_scratch, channels),
                      row_bytes(out, i), out.dtype);
  });
}

void norm_quantize(const Workers& workers, const ConstTensorView& x, const RowNorm& how,
                   const ActivationTransform& transform, const QTensor& out) {
  const int64_t channels = x.shape[1];
  const NormRow row = norm_row(how, {}, channels);
  const RowTransform to_do = row_transform(workers, transform);
  for_each_row(workers.pool, x.shape[0], channels, [&](int64_t i) {
    float* normed = floats(row_scratch, channels);
    workers.rows.norm(row_bytes(x, i), x.dtype, channels, row, normed, normed, DType::f32);
    workers.rows.quantize(normed, DType::f32, channels, to_do, floats(code_scratch, channels),
                          out.values.row<int8_t>(i), out.scales.as<float>() + i);
  });
}

void swiglu(const Workers& workers, const ConstTensorView& gate, const ConstTensorView& up,
            const TensorView& out) {
  for_each_row(workers.pool, out.shape[0], out.shape[1], [&](int64_t i) {
    workers.rows.swiglu(row_bytes(gate, i), row_bytes(up, i), out.dtype, out.shape[1],
                        row_bytes(out, i));
  });
}

void activate(const Workers& workers, const ConstTensorView& x, Activation how,
              const TensorView& out) {
  const int64_t channels = x.shape[1];
  for_each_row(workers.pool, x.shape[0], channels, [&](int64_t i) {
    if (how == Activation::silu) {
      workers.rows.silu(row_bytes(x, i), x.dtype, channels, row_bytes(out, i));
    } else if (x.dtype == DType::bf16) {
      gelu_row(x.row<bf16_t>(i), channels, out.row<bf16_t>(i));
    } else {
      gelu_row(x.row<float>(i), channels, out.row<float>(i));
    }
  });
}

void add(const Workers& workers, const TensorView& h, const ConstTensorView& x) {
  for_each_row(workers.pool, h.shape[0], h.shape[1], [&](int64_t i) {
    workers.rows.add(row_bytes(h, i), h.dtype, row_bytes(x, i), x.dtype, h.shape[1]);
  });
}

void add_gated(const Workers& workers, const TensorView& h, const ConstTensorView& x,
               const RowNorm& how, const ConstTensorView& gate) {
  const int64_t channels = x.shape[1];
  const NormRow row = norm_row(how, gate, channels);
  for_each_row(workers.pool, x.shape[0], channels, [&](int64_t i) {
    float* term = floats(row_scratch, channels);
    workers.rows.norm(row_bytes(x, i), x.dtype, channels, row, term, term, DType::f32);
    workers.rows.add(row_bytes(h, i), h.dtype, term, DType::f32, channels);
  });
}

void embed(const Workers& workers, const ConstTensorView& table, std::span<const int32_t> rows,
           const TensorView& out) {
  const auto bytes = static_cast<size_t>(table.shape[1] * bits_of(table.dtype) / 8);
  for_each_row(workers.pool, out.shape[0], out.shape[1], [&](int64_t i) {
    std::memcpy(row_bytes(out, i), row_bytes(table, rows[static_cast<size_t>(i)]), bytes);
  });
}

// A few rows per step of a sampler: not worth a thread.
void sinusoids(std::span<const float> times, const ConstTensorView& frequencies,
               const TensorView& out) {
  const int64_t half = out.shape[1] / 2;
  const auto store = [&](int64_t i, int64_t j, double value) {
    if (out.dtype == DType::bf16) {
      out.row<bf16_t>(i)[j] = from_f32<bf16_t>(static_cast<float>(value));
    } else {
      out.row<float>(i)[j] = static_cast<float>(value);
    }
  };
  for (int64_t i = 0; i < out.shape[0]; ++i) {
    for (int64_t j = 0; j < half; ++j) {
      const float angle = times[static_cast<size_t>(i)] * frequencies.as<float>()[j];
      store(i, j, std::sin(static_cast<double>(angle)));
      store(i, half + j, std::cos(static_cast<double>(angle)));
    }
  }
}

}  // namespace octet::cpu
