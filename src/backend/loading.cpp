// What a loader needs from a backend: bytes from the host, conversions, packed weights.
#include <algorithm>
#include <cstring>
#include <vector>

#include "backend/argument_checks.h"
#include "backend/backend.h"
#include "backend/host_backend.h"
#include "base/checked.h"
#include "base/error.h"

namespace octet {
namespace {

// Zeros follow up to a multiple of eight floats: kernels read whole vectors.
Buffer upload_vector(Backend& backend, const ConstTensorView& vector) {
  const auto* values = vector.as<float>();
  std::vector<float> padded(values, values + vector.shape[0]);
  padded.resize(static_cast<size_t>(round_up(vector.shape[0], 8)));
  return backend.upload(std::as_bytes(std::span(padded)));
}

// Rows [first, first + count) of a weight in host memory, copied to `chunk`.
TensorView send_rows(Backend& backend, const ConstTensorView& weight, int64_t first, int64_t count,
                     std::vector<std::byte>& dense, const Buffer& chunk) {
  const int64_t k = weight.shape[1];
  dense.resize(static_cast<size_t>(count * k));
  for (int64_t i = 0; i < count && k > 0; ++i) {
    std::memcpy(dense.data() + i * k, weight.row<int8_t>(first + i), static_cast<size_t>(k));
  }
  backend.copy_to_device(chunk.data(), dense.data(), dense.size());
  return chunk.view(DType::i8, {count, k});
}

}  // namespace

Buffer Backend::upload(size_t bytes, const Fill& fill, size_t granule) {
  check(granule > 0 && bytes % granule == 0,
        "upload: {} bytes in granules of {}, expected a multiple", bytes, granule);
  check(static_cast<bool>(fill), "upload: there is nothing that writes the bytes");
  return do_upload(bytes, fill, &pool(), granule);
}

Buffer Backend::upload(std::span<const std::byte> bytes) {
  const Fill copy = [&](std::byte* into, size_t first, size_t count) {
    std::memcpy(into, bytes.data() + first, count);
  };
  return do_upload(bytes.size(), copy, nullptr, 1);
}

void Backend::convert(const ConstTensorView& x, const TensorView& out,
                      const ConstTensorView& row_scale) {
  check_matrix("convert: x", x, {DType::f8_e4m3, DType::f16, DType::bf16, DType::f32});
  check_matrix("convert: out", out, {DType::f32, DType::bf16});
  check(out.shape == x.shape, "convert: out is {}, expected the shape {} of x", out.shape, x.shape);
  if (row_scale.data != nullptr) check_vector("convert: row_scale", row_scale, x.shape[0]);
  if (out.shape.elements() == 0) return;
  do_convert(x, out, row_scale);
}

QWeight Backend::begin_pack(int64_t n, int64_t k, const ConstTensorView& bias,
                            const ActivationTransform& transform, RowOrder order) {
  check(n >= 0 && k >= 0, "pack: n={} k={}, expected neither to be negative", n, k);
  check(k <= kMaxK, "pack: k={} could overflow the int32 sum; the largest k is {}", k, kMaxK);
  check_transform("pack", transform, k);
  QWeight weight;
  weight.n = n;
  weight.k = k;
  weight.gated = order == RowOrder::gate_up;
  if (weight.gated) {
    check(n % 2 == 0,
          "pack: a gate_up weight has n={}, expected an even n: the gate's rows, then as many of "
          "the up projection",
          n);
    check(bias.data == nullptr, "pack: a gate_up weight takes no bias, got {}; leave it out",
          bias.to_string());
  }
  if (bias.data != nullptr) {
    check_vector("pack: bias", bias, n);
    weight.bias = upload_vector(*this, bias);
  }
  weight.transform = transform;
  if (transform.kind == Transform::smooth) {
    weight.smooth = upload_vector(*this, transform.smooth);
    weight.transform.smooth = weight.smooth.view(DType::f32, {k});
  }
  do_begin_pack(weight);
  return weight;
}

void Backend::pack_rows(QWeight& weight, int64_t first, const QTensor& rows,
                        const ConstTensorView& factors) {
  check_quantized("pack: rows", rows);
  check(rows.k() == weight.k, "pack: rows have k={}, but the weight was begun with k={}", rows.k(),
        weight.k);
  check(first >= 0 && first <= weight.n && rows.rows() <= weight.n - first,
        "pack: rows {} to {} of a weight that was begun with n={}", first, first + rows.rows(),
        weight.n);
  if (factors.data != nullptr) check_vector("pack: factors", factors, rows.rows());
  if (rows.rows() == 0) return;
  do_pack_rows(weight, first, rows, factors);
}

QWeight Backend::pack(const QTensor& weight, const ConstTensorView& bias,
                      const ActivationTransform& transform, RowOrder order) {
  check_quantized("pack: weight", weight);
  const int64_t n = weight.rows(), k = weight.k();
  QWeight packed = begin_pack(n, k, bias, transform, order);
  if (keeps_data_on_host(*this)) {
    pack_rows(packed, 0, weight);
    return packed;
  }
  // In chunks: a second copy of a large weight need not fit.
  constexpr int64_t kChunkBytes = int64_t{32} << 20;
  const int64_t at_once =
      std::clamp<int64_t>(kChunkBytes / std::max<int64_t>(k, 1), 1, std::max<int64_t>(n, 1));
  std::vector<std::byte> dense;
  const Buffer chunk = allocate(static_cast<size_t>(at_once * k));
  const Buffer scales = upload({weight.scales.data, static_cast<size_t>(n) * sizeof(float)});
  for (int64_t first = 0; first < n; first += at_once) {
    const int64_t count = std::min(at_once, n - first);
    pack_rows(packed, first,
              {send_rows(*this, weight.values, first, count, dense, chunk),
               scales.view(DType::f32, {count}, static_cast<size_t>(first) * sizeof(float))});
  }
  return packed;
}

QWeight Backend::borrow(const PlainWeight& weight) {
  check_matrix("borrow: codes", weight.codes, {DType::i8});
  const int64_t n = weight.codes.shape[0], k = weight.codes.shape[1];
  check(k <= kMaxK, "borrow: k={} could overflow the int32 sum; the largest k is {}", k, kMaxK);
  check_vector("borrow: scales", weight.scales, weight.scales.shape[0] == 1 ? 1 : n);
  check_transform("borrow", weight.transform, k);
  if (weight.bias.data != nullptr) {
    const DType type = weight.bias.dtype;
    check(type == DType::f32 || type == DType::bf16 || type == DType::f16,
          "borrow: the bias is {}, expected F32, BF16 or F16", name_of(type));
    check_vector("borrow: bias", weight.bias, n, type);
  }
  if (weight.order == RowOrder::gate_up) {
    check(n % 2 == 0 && weight.bias.data == nullptr,
          "borrow: a gate_up weight has n={}{}, expected an even n and no bias", n,
          weight.bias.data == nullptr ? "" : " and a bias");
  }
  return do_borrow(weight);
}

QWeight Backend::do_borrow(const PlainWeight& weight) {
  const int64_t n = weight.codes.shape[0];
  const auto value_at = [](const ConstTensorView& vector, int64_t i) {
    switch (vector.dtype) {
      case DType::bf16: return to_f32(vector.as<bf16_t>()[i]);
      case DType::f16: return to_f32(vector.as<f16_t>()[i]);
      default: return vector.as<float>()[i];
    }
  };
  const auto count = static_cast<size_t>(n);
  std::vector<float> scales(count), bias(weight.bias.data == nullptr ? 0 : count);
  const bool shared = weight.scales.shape[0] == 1;
  for (int64_t i = 0; i < n; ++i) {
    scales[static_cast<size_t>(i)] = value_at(weight.scales, shared ? 0 : i);
  }
  for (size_t i = 0; i < bias.size(); ++i) {
    bias[i] = value_at(weight.bias, static_cast<int64_t>(i));
  }
  const auto view = [](std::vector<float>& values) {
    return TensorView(reinterpret_cast<std::byte*>(values.data()), DType::f32,
                      {static_cast<int64_t>(values.size())});
  };
  // A QTensor is used for outputs, too, and so is never const; these are only read.
  const TensorView codes = TensorView::rows(const_cast<std::byte*>(weight.codes.data), DType::i8, n,
                                            weight.codes.shape[1], weight.codes.row_stride());
  return pack({codes, view(scales)}, bias.empty() ? ConstTensorView() : ConstTensorView(view(bias)),
              weight.transform, weight.order);
}

}  // namespace octet
